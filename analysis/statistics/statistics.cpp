// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace paceline::analysis {

std::int64_t quantile(std::vector<std::int64_t> values, double q) {
  if (values.empty()) return 0;
  const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), middle, values.end());
  if (below + 1 == values.size()) return *middle;
  const std::int64_t above = *std::min_element(middle + 1, values.end());
  return *middle + std::llround((position - static_cast<double>(below)) * static_cast<double>(above - *middle));
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(values.size(), 1));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 != 0 ? *middle : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<double> places_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> places(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) places[order[i]] = 0.5 * static_cast<double>(first + last - 1);
  }
  return places;
}

}  // namespace paceline::analysis
