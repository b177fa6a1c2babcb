// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/autocorrelation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace paceline::analysis {
namespace {

// A series that stays alike for longer is averaged over neighbours, which keeps the long-run variance τ × variance and
// bounds the cost: a constant rise over a million values would take 10^11 products.
constexpr std::size_t most_lags = 512, together = 8;

// `lag` in values: a multiple of the columns.
double covariance(std::span<const double> centred, std::size_t lag) {
  return std::inner_product(centred.begin() + static_cast<std::ptrdiff_t>(lag), centred.end(), centred.begin(), 0.0);
}

double integrated_time(std::span<const double> centred, std::size_t columns) {
  const double variance = covariance(centred, 0);
  if (!(variance > 0)) return 1;
  const std::size_t rows = centred.size() / columns;
  double time = 1;
  for (std::size_t lag = 1; lag < rows && static_cast<double>(lag) <= 5 * time; ++lag) {
    if (lag > most_lags) {
      std::vector<double> means(rows / together * columns);
      for (std::size_t row = 0; row < rows / together * together; ++row) {
        for (std::size_t c = 0; c < columns; ++c) {
          means[row / together * columns + c] += centred[row * columns + c] / together;
        }
      }
      return std::max(integrated_time(means, columns) * together * together * covariance(means, 0) / variance, 1.0);
    }
    time = std::max(time + 2 * covariance(centred, lag * columns) / variance, 1.0);
  }
  return time;
}

}  // namespace

double autocorrelation_time(std::span<const double> centred, int fitted_means, std::size_t columns, double errors) {
  const double variance = covariance(centred, 0);
  if (!(variance > 0) || centred.size() <= columns) return 1;
  const double time = integrated_time(centred, columns);
  const auto n = static_cast<double>(centred.size() / columns);
  const auto independent = static_cast<double>(std::max<std::size_t>(columns, 2) - 1);
  const double estimate = covariance(centred, columns) / variance;
  const double error = std::sqrt((1 - estimate * estimate) / (n * independent));
  const double upper = estimate + fitted_means * (1 + 3 * estimate) / n + errors * error;
  if (upper >= 1) return n;
  return std::max(time, (1 + upper) / (1 - upper));
}

double variance_beyond_blocks(double time, std::size_t block) {
  const double shared = (time * time - 1) / (2 * static_cast<double>(block) * time);
  return 1 / (1 - std::clamp(shared, 0.0, 0.5));
}

}  // namespace paceline::analysis
