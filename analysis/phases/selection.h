// SPDX-License-Identifier: Apache-2.0
// Figures about a selection: an iteration, the slices of one name.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/phases/iterations.h"
#include "analysis/phases/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The iteration that contains this time; nullptr if none does. O(log n).
const Iteration* iteration_at(std::span<const Iteration> iterations, std::int64_t time_ns);

// The durations of the slices of one name.
struct DurationStatistics {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, minimum_ns = 0, maximum_ns = 0;
  std::int64_t median_ns = 0, p95_ns = 0;  // quantiles as in statistics.h
};

// Over these tracks of a rank. Linear in their slices.
DurationStatistics durations_of(const Trace& trace, std::span<const Track> tracks, NameId name);

}  // namespace paceline::analysis
