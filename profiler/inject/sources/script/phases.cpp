// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/script/phases.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/inject/buffer/hot.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/sources/script/ranges.h"

namespace paceline::inject {

thread_local constinit ScriptThread script_thread __attribute__((tls_model("initial-exec")));

namespace {

struct Name {
  const char *name, *category;
};
constexpr Name phase_names[] = {
    {"preprocess", "preprocess"},
    {"fetch", "preprocess"},
    {"collate", "preprocess"},
    {"forward", "forward"},
    {"recompute", "backward"},
    {"backward", "backward"},
    {"optimizer", "optimizer"},
    {"zero_grad", "optimizer"},
    {"evaluate", "evaluate"},
    {"checkpoint", "checkpoint"},
    {"copy", "copy"},
    {"startup", "startup"},
    {"wait", "wait"},
    {"iteration", "iteration"},
};
static_assert(sizeof phase_names / sizeof *phase_names == static_cast<int>(Phase::count));

struct Training {
  const ScriptThread* thread = nullptr;  // which has the iterations
  const void* only_optimizer = nullptr;
  std::uint64_t iteration = 0;               // the number of the next one
  std::uint64_t batches = 0, backwards = 0;  // for training, that have begun
  std::uint64_t backwards_before = 0;        // the open iteration
  std::uint32_t backwards_running = 0;       // on all threads: CUDA's backward runs on threads of its own
  bool is_open = false;                      // an iteration
  bool has_optimizer = false;
  bool stepped = false;
  bool finished = false;
  bool marks_steps = false;  // the script marks its iterations itself
  bool in_own_step = false;  // one of them is open
  bool is_own = false;       // the open iteration is a range of the script's own domain
  bool in_step = false;      // of an optimizer: a step that it calls is a part of it
  bool evaluating = false;   // the latest call was Module.eval(), not a forward for training
  bool described = false;
  bool refused = false;  // the process is not recorded
};
PACELINE_HOT Training training;

PACELINE_HOT std::uint64_t phase_kinds[static_cast<int>(Phase::count)];  // in a forked child they stay valid
PACELINE_HOT bool attached = false;

void note_begin(bool is_own) {
  training.is_open = true;
  training.is_own = is_own;
  training.stepped = training.finished = false;
  training.backwards_before = training.backwards;
}

void begin_iteration() {
  push_number(kind_of_phase(Phase::iteration), static_cast<std::int64_t>(training.iteration++));
  note_begin(false);
}

// True if the open iteration has what ends one.
bool is_complete() {
  return training.stepped || (!training.has_optimizer && training.backwards != training.backwards_before);
}

void end_iteration() {
  training.is_own ? pop_own() : pop_kind();
  training.is_open = false;
}

pid_t thread_id() { return static_cast<pid_t>(syscall(SYS_gettid)); }  // gettid() needs glibc 2.30

// True if the calling thread has the iterations, or takes them because no thread has them yet. A reader of the trace
// looks for them on the first thread of the process, unless it is told another one.
bool has_iterations() {
  if (training.thread == nullptr) {
    training.thread = &script_thread;
    if (thread_id() != getpid()) {
      char number[16];
      snprintf(number, sizeof number, "%d", static_cast<int>(thread_id()));
      record_setting("training_thread", number);
    }
  }
  return training.thread == &script_thread;
}

void work(bool new_batch) {
  if (script_thread.depth != 0 || !attach_script()) return;
  // A thread that the script started may fetch batches for the one that trains.
  if (training.thread == nullptr && new_batch && thread_id() != getpid()) return;
  if (!has_iterations() || training.marks_steps) return;
  if (!training.is_open) {
    begin_iteration();
  } else if (is_complete() && (new_batch || training.finished)) {
    begin_next_iteration();
  }
}

bool enter_in_iteration(Phase phase) {
  if (training.is_open) enter(phase);
  return training.is_open;
}

void decrease(std::uint32_t& count) {
  if (count != 0) --count;  // 0 in a child that was forked inside a range
}

}  // namespace

bool attach_script() {
  if (attached) return true;
  if (training.refused || !open_for_script()) {
    training.refused = true;
    return false;
  }
  for (int i = 0; i < static_cast<int>(Phase::count); ++i) {
    phase_kinds[i] = kind_of(phase_names[i].name, phase_names[i].category);
  }
  attached = true;
  return true;
}

std::uint64_t kind_of_phase(Phase phase) { return phase_kinds[static_cast<int>(phase)]; }

void enter(Phase phase) {
  ++script_thread.depth;
  push_kind(kind_of_phase(phase));
}

void leave() {
  pop_kind();
  decrease(script_thread.depth);
}

void begin_batch(bool for_training) {
  if (for_training) {
    work(true);
    ++training.batches;
  } else {
    attach_script();
    begin_interlude();
  }
  enter(Phase::preprocess);
  ++script_thread.inside;
}

void seek_batch() {
  attach_script();
  enter(Phase::preprocess);
  ++script_thread.inside;
}

void found_batch() {
  end_inside();
  work(true);
  ++training.batches;
}

bool begin_forward(bool with_gradients) {
  Phase phase = Phase::forward;
  bool describe = false;
  if (training.backwards_running != 0) {
    phase = Phase::recompute;  // activation checkpointing
  } else if (with_gradients) {
    work(false);
    training.evaluating = false;
    describe = attached && !training.described;
    training.described |= describe;
  } else if (!training.is_open || is_complete()) {  // otherwise it is a part of the step, such as a teacher's forward
    attach_script();
    begin_interlude();
    phase = Phase::evaluate;
  }
  enter(phase);
  ++script_thread.inside;
  return describe;
}

void end_inside() {
  leave();
  decrease(script_thread.inside);
}

bool begin_backward() {
  if (script_thread.runs_backward || !attach_script()) return false;
  work(false);
  enter(Phase::backward);
  script_thread.runs_backward = true;
  ++training.backwards;
  ++training.backwards_running;
  return true;
}

void end_backward() {
  leave();
  script_thread.runs_backward = false;
  decrease(training.backwards_running);
}

std::uint64_t count_batches() { return training.batches; }
std::uint64_t count_backwards() { return training.backwards; }

bool begin_zero_grad() { return enter_in_iteration(Phase::zero_grad); }
bool begin_clipping() { return enter_in_iteration(Phase::optimizer); }

bool begin_copy() {
  if (!attached || is_inside()) return false;
  enter(Phase::copy);
  return true;
}

void begin_fetch() {
  attach_script();
  enter(Phase::fetch);
  ++script_thread.inside;
  script_thread.fetching = script_thread.fetching << 1 | 1;
}

void begin_collate() {
  if ((script_thread.fetching & 1) == 0) return;  // it is called outside a fetch, or a second time
  script_thread.fetching ^= 1;
  leave();
  enter(Phase::collate);
}

void end_fetch() {
  script_thread.fetching >>= 1;
  end_inside();
}

void begin_work() { work(false); }
void begin_work_on_batch() { work(true); }

void begin_interlude() {
  if (training.is_open && is_complete() && !training.marks_steps && is_outside()) end_iteration();
}

void note_evaluation() { training.evaluating = true; }
bool is_evaluating() { return training.evaluating; }

bool begin_only_step(const void* optimizer) {
  if (optimizer == nullptr || optimizer != training.only_optimizer || training.in_step) return false;
  work(false);
  enter(Phase::optimizer);
  training.in_step = true;
  return true;
}

void begin_step() {
  training.only_optimizer = nullptr;
  enter(Phase::optimizer);
  training.in_step = true;
}

bool end_step() {
  training.in_step = false;
  training.has_optimizer = true;
  leave();
  if (!training.is_open || training.thread != &script_thread) return false;
  training.stepped = true;
  training.finished = training.only_optimizer != nullptr;
  return true;
}

bool is_in_step() { return training.in_step; }
bool has_stepped() { return training.is_open && training.stepped; }
bool is_outside() { return script_thread.depth == 0 && training.thread == &script_thread; }

void begin_next_iteration() {
  if (training.marks_steps) return;
  end_iteration();
  begin_iteration();
}

void set_finished(bool finished) { training.finished = finished; }
void set_only_optimizer(const void* optimizer) { training.only_optimizer = optimizer; }

void note_optimizer() { training.has_optimizer = true; }

void begin_own_step() {
  if (script_thread.own_steps++ != 0 || script_thread.depth != 0 || !attach_script()) return;
  if (!has_iterations()) return;
  training.in_own_step = true;
  // Fetching the first batch has begun an iteration already, before anyone knew that the script marks its steps.
  const bool goes_on = training.is_open && !training.stepped && !training.marks_steps;
  training.marks_steps = true;
  if (goes_on) return;
  if (training.is_open) end_iteration();
  push_own_number(own_kind("iteration"), static_cast<std::int64_t>(training.iteration++));
  note_begin(true);
}

void end_own_step() {
  if (script_thread.own_steps == 0 || --script_thread.own_steps != 0)
    return;  // 0 in a child that was forked inside one
  if (training.thread != &script_thread || !training.in_own_step) return;
  training.in_own_step = false;
  if (training.is_open) end_iteration();
}

void reset_script_phases() {
  training = {};
  script_thread = {};
}

}  // namespace paceline::inject
