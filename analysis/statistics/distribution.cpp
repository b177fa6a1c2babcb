// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/distribution.h"

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace distribution_parts {

// Reorders the values.
double quantile_of(std::vector<std::int64_t>& values, double q) {
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::ranges::nth_element(values, at);
  const auto low = static_cast<double>(*at);
  if (below + 1 == values.size()) return low;
  const auto high = static_cast<double>(*std::min_element(at + 1, values.end()));
  return low + (high - low) * (place - static_cast<double>(below));
}

}  // namespace distribution_parts

double RunningMoments::stddev() const { return count_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(count_ - 1)); }

Distribution distribution_of(std::vector<std::int64_t> values) {
  Distribution out;
  if (values.empty()) return out;
  RunningMoments moments;
  for (const std::int64_t value : values) moments.add(static_cast<double>(value));
  const auto [least, most] = std::ranges::minmax_element(values);
  out.count = moments.count(), out.mean = moments.mean(), out.stddev = moments.stddev();
  out.minimum = *least, out.maximum = *most;
  out.p25 = distribution_parts::quantile_of(values, 0.25);
  out.median = distribution_parts::quantile_of(values, 0.5);
  out.p75 = distribution_parts::quantile_of(values, 0.75);
  return out;
}

}  // namespace paceline::analysis
