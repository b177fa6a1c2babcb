// SPDX-License-Identifier: Apache-2.0
// The course of a counter over time: for a level its value, for a sum its rise per second.
#pragma once

#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// value[i] holds from time_ns[i] to time_ns[i + 1]. The last value belongs to the last moment only.
struct CounterCurve {
  std::string unit;  // a level keeps its own; a sum has "bytes/s", "/s"; a sum of times has "%": 100 % is one CPU
  std::vector<std::int64_t> time_ns;
  std::vector<double> value;
};

// The first value of a sum is the rise between its first two samples, and the last value repeats the one before. A sum
// with one sample has no values. A sum that falls was reset, and counts as 0. Cost: linear.
CounterCurve curve_of(const Samples& samples);

// The rank's counter of that name and device; nullptr where there is none. O(tracks).
const Samples* find_counter(const Rank& rank, std::string_view name, std::string_view device = "");

}  // namespace paceline::analysis
