// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline::analysis {
namespace {

// The estimator's derivative by each logarithm.
std::vector<double> gradient_of(std::span<const double> logs, const Estimator& estimator) {
  constexpr double step = 1e-4;
  std::vector<double> moved(logs.begin(), logs.end()), gradient;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i] = logs[i] + step;
    const double above = estimator(moved);
    moved[i] = logs[i] - step;
    gradient.push_back((above - estimator(moved)) / (2 * step));
    moved[i] = logs[i];
  }
  return gradient;
}

Estimate with_gradient(double value, std::span<const double> gradient, std::span<const Spread* const> spreads) {
  double variance = 0, of_variance = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double part = gradient[i] * gradient[i] * spreads[i]->variance;
    variance += part;
    of_variance += part * part / spreads[i]->degrees;
  }
  return {value, std::sqrt(variance), of_variance > 0 ? std::max(1.0, variance * variance / of_variance) : 1};
}

}  // namespace

bool have_interval(std::span<const Spread* const> spreads) {
  bool within = false, between = false;
  for (const Spread* spread : spreads) {
    if (!spread->known()) return false;
    (spread->source == SpreadSource::iterations ? within : between) = true;
  }
  return within != between;
}

Estimate estimate_of(std::span<const double> logs, std::span<const Spread* const> spreads, const Estimator& estimator) {
  return with_gradient(estimator(logs), gradient_of(logs, estimator), spreads);
}

std::optional<Interval> interval_of(std::span<const double> logs, std::span<const Spread* const> spreads,
                                    const Estimator& estimator, double miss) {
  if (!have_interval(spreads)) return std::nullopt;
  const auto gradient = gradient_of(logs, estimator);
  const Estimate estimate = with_gradient(0, gradient, spreads);
  if (!(estimate.error > 0) || !std::isfinite(estimate.error)) return std::nullopt;
  const double t = t_quantile_two_sided(miss, estimate.degrees);
  double ends[2];
  for (const int side : {0, 1}) {
    std::vector<double> moved(logs.begin(), logs.end());
    for (std::size_t i = 0; i < moved.size(); ++i) {
      moved[i] += (side == 0 ? -t : t) * gradient[i] * spreads[i]->variance / estimate.error;
    }
    ends[side] = estimator(moved);
    if (!std::isfinite(ends[side])) return std::nullopt;
  }
  return Interval{std::min(ends[0], ends[1]), std::max(ends[0], ends[1])};
}

}  // namespace paceline::analysis
