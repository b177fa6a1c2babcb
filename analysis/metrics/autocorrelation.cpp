#include "analysis/metrics/autocorrelation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace paceline::analysis {

double autocorrelation_time(std::span<const double> centred, int fitted_means) {
  const double variance = std::inner_product(centred.begin(), centred.end(), centred.begin(), 0.0);
  if (!(variance > 0)) return 1;
  const auto correlation = [&](std::size_t lag) {
    return std::inner_product(centred.begin() + static_cast<std::ptrdiff_t>(lag), centred.end(), centred.begin(), 0.0) /
           variance;
  };
  double time = 1;
  for (std::size_t lag = 1; lag < centred.size() && static_cast<double>(lag) <= 5 * time; ++lag) {
    time = std::max(time + 2 * correlation(lag), 1.0);
  }
  const auto n = static_cast<double>(centred.size());
  const double estimate = correlation(1);
  const double upper = estimate + fitted_means * (1 + 3 * estimate) / n + std::sqrt((1 - estimate * estimate) / n);
  if (upper >= 1) return n;
  return std::max(time, (1 + upper) / (1 - upper));
}

}  // namespace paceline::analysis
