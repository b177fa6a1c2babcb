// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/script/marks.h"

#include "profiler/format/iteration_rules.h"
#include "profiler/inject/buffer/gate.h"
#include "profiler/inject/sources/script/phases.h"
#include "profiler/inject/sources/script/ranges.h"
#include "profiler/inject/sources/script/table.h"

#define EXPORTED __attribute__((visibility("default")))

using namespace paceline::inject;

namespace {

// What a range of this name is for the iterations that the hooks make. The upper half of a range's number holds it, and
// the lower half the name.
enum class Part : std::uint32_t { none, work, interlude };

Part part_of(const char* name) {
  for (const char* work : {"preprocess*", "forward*", "backward*", "optimizer*"}) {
    if (paceline::format::fits_pattern(work, name)) return Part::work;
  }
  for (const char* interlude : {"evaluat*", "validat*", "checkpoint*"}) {
    if (paceline::format::fits_pattern(interlude, name)) return Part::interlude;
  }
  return Part::none;
}

}  // namespace

extern "C" {

EXPORTED int paceline_script_active_v1() {
  if (gate.on.load(std::memory_order_relaxed) != 0) return 1;
  const FileState state = file_state.load(std::memory_order_relaxed);
  return state == FileState::unopened || state == FileState::in_child ? 1 : 0;
}

EXPORTED uint64_t paceline_script_range_v1(const char* name) {
  if (!attach_script()) return 0;
  const std::uint64_t kind = own_kind(name);
  return kind == 0 ? 0 : kind | static_cast<std::uint64_t>(part_of(name)) << 32;
}

// The hooks' iterations begin and end before the range begins, so that ranges nest.
EXPORTED void paceline_script_begin_v1(uint64_t range) {
  const auto part = static_cast<Part>(range >> 32);
  if (part == Part::work && has_python_hooks()) begin_work();
  if (part == Part::interlude) begin_interlude();
  push_own(range);
}
EXPORTED void paceline_script_end_v1() { pop_own(); }

EXPORTED void paceline_script_begin_step_v1() { begin_own_step(); }
EXPORTED void paceline_script_end_step_v1() { end_own_step(); }
}
