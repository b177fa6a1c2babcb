// SPDX-License-Identifier: Apache-2.0
// Means and order statistics.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline::analysis {

// The q-quantile (0 <= q <= 1) of the values, interpolated linearly between order statistics (Hyndman and Fan's type 7,
// as in R and NumPy) and rounded to the nearest nanosecond; 0 if there are none. Cost: linear on average.
std::int64_t quantile(std::vector<std::int64_t> values, double q);
inline std::int64_t median(std::vector<std::int64_t> values) { return quantile(std::move(values), 0.5); }

// 0 if there are none. Cost: linear on average.
double mean(std::span<const double> values);
double median(std::vector<double> values);

// The place of each value in the sorted order, from 0; equal values share the mean of their places. Cost: n log n.
std::vector<double> places_of(std::span<const double> values);

}  // namespace paceline::analysis
