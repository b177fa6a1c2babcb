// SPDX-License-Identifier: Apache-2.0
// Iterations of the running program: which ranges they are, their number and the duration of each. They are followed
// if an option needs them (--iterations, --ring-slow, --hang) and for the scheduler's sums (iteration_sums.h), and then
// even while recording is paused.
//
// An iteration is an outermost range that matches the rules (format/iteration_rules.h) or --iteration-name, on the
// first thread that has such a range. Iterations count from 0.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiler/inject/sources/flags.h"

namespace paceline::inject {

// True if the functions below must be called for each range. Cost: one relaxed load.
inline bool watching() { return is_on(SourceFlag::follows_iterations); }

// Called before a push or start is recorded, and after a pop or end was recorded. `scope` as in the event. They may
// resume and pause recording.
void watch_push(std::uint64_t scope);
void watch_pop(std::uint16_t domain);
void watch_start(std::uint64_t scope, std::uint64_t range);
void watch_end(std::uint64_t range);

// Called before the first range can have this category.
void note_category(std::uint16_t domain, std::uint16_t category, std::string_view text);

}  // namespace paceline::inject
