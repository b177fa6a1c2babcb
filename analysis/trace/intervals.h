// SPDX-License-Identifier: Apache-2.0
// Sets of time as sorted, disjoint intervals.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::analysis {

struct TimeInterval {
  std::int64_t start_ns = 0, end_ns = 0;
};
using Intervals = std::vector<TimeInterval>;

// Sorted and disjoint, covering the same time. O(n log n).
Intervals merged(Intervals intervals);

// Of merged intervals: how long they are; the time in both; the time in `a` and not in `b`. Linear.
std::int64_t total_ns(const Intervals& intervals);
Intervals common(const Intervals& a, const Intervals& b);
Intervals without(const Intervals& a, const Intervals& b);

}  // namespace paceline::analysis
