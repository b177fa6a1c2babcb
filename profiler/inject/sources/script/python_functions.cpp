// SPDX-License-Identifier: Apache-2.0
// The functions of phases.h as functions of Python, without Python's headers: the library that is loaded into
// every program must not depend on an interpreter. This file uses Python's stable interface only, so one library serves
// all versions.
#include <type_traits>

#include "profiler/inject/buffer/hot.h"
#include "profiler/inject/sources/script/phases.h"
#include "profiler/inject/sources/script/table.h"

namespace paceline::inject {
namespace {

using Object = void;  // PyObject

PACELINE_HOT paceline_python python{};

// `none`: these functions are made with None as the object that they belong to.
Object* to_python(Object* none, bool value) {
  Object* object = value ? python.truth : none;
  python.add_reference(object);
  return object;
}

template <auto function, class... Arguments>
Object* call(Object* none, Arguments... arguments) {
  if constexpr (std::is_void_v<decltype(function(arguments...))>) {
    function(arguments...);
    return to_python(none, false);
  } else {
    return to_python(none, function(arguments...));
  }
}

template <auto function>
[[gnu::hot]] Object* without_argument(Object* none, Object*) {
  return call<function>(none);
}
template <auto function>
[[gnu::hot]] Object* with_truth(Object* none, Object* given) {
  return call<function>(none, given == python.truth);
}
template <auto function>
Object* with_object(Object* none, Object* given) {
  return call<function>(none, static_cast<const void*>(given == none ? nullptr : given));
}

// These belong to the function that they call, so that a hook of one of them is a single call.
template <bool (*begin)(), void (*end)()>
[[gnu::hot]] Object* around(Object* original, Object* arguments, Object* named) {
  const bool began = begin();
  Object* result = python.call(original, arguments, named);
  if (began) end();
  return result;
}
[[gnu::hot]] Object* around_fetch(Object* original, Object* arguments, Object* named) {
  begin_fetch();
  Object* result = python.call(original, arguments, named);
  end_fetch();
  return result;
}
[[gnu::hot]] Object* before_collate(Object* original, Object* arguments, Object* named) {
  begin_collate();
  return python.call(original, arguments, named);
}
// Belongs to two functions: the original, and the one for steps that begin_only_step() refuses.
[[gnu::hot]] Object* around_step(Object* functions, Object* arguments, Object* named) {
  const bool began = begin_only_step(python.item(arguments, 0));
  Object* result = python.call(python.item(functions, began ? 0 : 1), arguments, named);
  if (began) end_step();
  return result;
}

template <Phase phase>
void enter_phase() {
  enter(phase);
}

// METH_NOARGS, METH_O, METH_VARARGS | METH_KEYWORDS
constexpr int no_argument = 4, one_argument = 8, any_arguments = 3;

using OneArgument = Object*(Object*, Object*);
using AnyArguments = Object*(Object*, Object*, Object*);

paceline_python_function defined(const char* name, OneArgument* function, int flags) {
  return {.name = name, .function = reinterpret_cast<void*>(function), .flags = flags, .text = nullptr};
}
template <auto function>
paceline_python_function taking_nothing(const char* name) {
  return defined(name, without_argument<function>, no_argument);
}
template <auto function>
paceline_python_function taking_truth(const char* name) {
  return defined(name, with_truth<function>, one_argument);
}
template <auto function>
paceline_python_function taking_object(const char* name) {
  return defined(name, with_object<function>, one_argument);
}
paceline_python_function hook(const char* name, AnyArguments* function) {
  return {.name = name, .function = reinterpret_cast<void*>(function), .flags = any_arguments, .text = nullptr};
}

PACELINE_HOT paceline_python_function functions[] = {
    taking_nothing<attach_script>("attach"),
    taking_nothing<is_inside>("is_inside"),
    taking_truth<begin_batch>("begin_batch"),
    taking_nothing<seek_batch>("seek_batch"),
    taking_nothing<found_batch>("found_batch"),
    taking_truth<begin_forward>("begin_forward"),
    taking_nothing<end_inside>("end_inside"),
    taking_nothing<begin_copy>("begin_copy"),
    taking_nothing<begin_work>("begin_work"),
    taking_nothing<begin_work_on_batch>("begin_work_on_batch"),
    taking_nothing<begin_interlude>("begin_interlude"),
    taking_nothing<note_evaluation>("note_evaluation"),
    taking_nothing<is_evaluating>("is_evaluating"),
    taking_nothing<begin_step>("begin_step"),
    taking_nothing<end_step>("end_step"),
    taking_nothing<is_in_step>("is_in_step"),
    taking_nothing<has_stepped>("has_stepped"),
    taking_nothing<is_outside>("is_outside"),
    taking_nothing<begin_next_iteration>("begin_next_iteration"),
    taking_truth<set_finished>("set_finished"),
    taking_object<set_only_optimizer>("set_only_optimizer"),
    taking_nothing<note_optimizer>("note_optimizer"),
    taking_nothing<reset_script_phases>("reset"),
    taking_nothing<enter_phase<Phase::preprocess>>("enter_preprocess"),
    taking_nothing<enter_phase<Phase::forward>>("enter_forward"),
    taking_nothing<enter_phase<Phase::backward>>("enter_backward"),
    taking_nothing<enter_phase<Phase::optimizer>>("enter_optimizer"),
    taking_nothing<enter_phase<Phase::checkpoint>>("enter_checkpoint"),
    taking_nothing<enter_phase<Phase::startup>>("enter_startup"),
    taking_nothing<leave>("leave"),
    hook("around_backward", around<begin_backward, end_backward>),
    hook("around_zero_grad", around<begin_zero_grad, leave>),
    hook("around_clipping", around<begin_clipping, leave>),
    hook("around_fetch", around_fetch),
    hook("before_collate", before_collate),
    hook("around_step", around_step),
    {},
};

}  // namespace

const paceline_python_function* functions_for_python(const paceline_python* functions_of_python) {
  python = *functions_of_python;
  return functions;
}

bool has_python_hooks() { return python.call != nullptr; }

}  // namespace paceline::inject
