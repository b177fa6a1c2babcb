#include "analysis/metrics/statistics.h"

#include <algorithm>
#include <cmath>

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

}  // namespace paceline::analysis
