#include "analysis/metrics/autocorrelation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace paceline::analysis {
namespace {

// A series that stays alike for longer is averaged over neighbours, which keeps the long-run variance τ × variance and
// bounds the cost: a constant rise over a million values would take 10^11 products.
constexpr std::size_t most_lags = 512, together = 8;

double covariance(std::span<const double> centred, std::size_t lag) {
  return std::inner_product(centred.begin() + static_cast<std::ptrdiff_t>(lag), centred.end(), centred.begin(), 0.0);
}

double integrated_time(std::span<const double> centred) {
  const double variance = covariance(centred, 0);
  if (!(variance > 0)) return 1;
  double time = 1;
  for (std::size_t lag = 1; lag < centred.size() && static_cast<double>(lag) <= 5 * time; ++lag) {
    if (lag > most_lags) {
      std::vector<double> means(centred.size() / together);
      for (std::size_t i = 0; i < means.size() * together; ++i) means[i / together] += centred[i] / together;
      return std::max(integrated_time(means) * together * together * covariance(means, 0) / variance, 1.0);
    }
    time = std::max(time + 2 * covariance(centred, lag) / variance, 1.0);
  }
  return time;
}

}  // namespace

double autocorrelation_time(std::span<const double> centred, int fitted_means) {
  const double variance = covariance(centred, 0);
  if (!(variance > 0)) return 1;
  const double time = integrated_time(centred);
  const auto n = static_cast<double>(centred.size());
  const double estimate = covariance(centred, 1) / variance;
  const double upper = estimate + fitted_means * (1 + 3 * estimate) / n + std::sqrt((1 - estimate * estimate) / n);
  if (upper >= 1) return n;
  return std::max(time, (1 + upper) / (1 - upper));
}

}  // namespace paceline::analysis
