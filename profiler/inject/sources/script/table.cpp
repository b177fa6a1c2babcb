// SPDX-License-Identifier: Apache-2.0
// The table of functions for scripts.
#include "profiler/inject/sources/script/table.h"

#include "profiler/inject/sources/script/phases.h"
#include "profiler/inject/sources/script/ranges.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {

namespace {

void push_phase_wait(std::uint64_t first, std::uint64_t last) { push_wait(kind_of_phase(Phase::wait), first, last); }

void say_for_script(const char* text) { say("%s", text); }

}  // namespace
}  // namespace paceline::inject

extern "C" {
// Declared first, because a const is local to its file otherwise.
extern __attribute__((visibility("default"))) const struct paceline_script_ranges_v1 paceline_script_ranges_v1;
const struct paceline_script_ranges_v1 paceline_script_ranges_v1 = {
    .size = sizeof(struct paceline_script_ranges_v1),
    .kind = paceline::inject::kind_of,
    .push = paceline::inject::push_kind,
    .pop = paceline::inject::pop_kind,
    .mark = paceline::inject::mark_kind,
    .mark_value = paceline::inject::mark_value,
    .push_collective = paceline::inject::push_collective,
    .start_collective = paceline::inject::start_collective,
    .start_message = paceline::inject::start_message,
    .end = paceline::inject::end_range,
    .push_wait = paceline::inject::push_phase_wait,
    .say = paceline::inject::say_for_script,
    .for_python = paceline::inject::functions_for_python,
    .count_backwards = paceline::inject::count_backwards,
    .count_batches = paceline::inject::count_batches,
    .note_rank = paceline::inject::note_rank,
};
}
