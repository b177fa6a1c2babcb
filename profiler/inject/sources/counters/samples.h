// SPDX-License-Identifier: Apache-2.0
// Definitions and samples of counters, for the files of this folder and on the counter thread only.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiler/format/event.h"

namespace paceline::inject {

using format::CounterKind;

inline constexpr unsigned most_counters = 250;

// Defines a counter and returns its number; 0 if there are too many.
std::uint16_t define_counter(std::string_view name, std::string_view unit, std::string_view device, CounterKind kind);

// The following samples are taken now.
void begin_moment();
std::uint64_t current_moment();  // absolute ticks

// Records a sample. Counter 0 does not exist and is ignored.
void record_sample(std::uint16_t counter, std::uint64_t value);
void record_sample_at(std::uint64_t moment, std::uint16_t counter, std::uint64_t value);

// In a forked child: no counter is defined.
void reset_samples_in_child();

}  // namespace paceline::inject
