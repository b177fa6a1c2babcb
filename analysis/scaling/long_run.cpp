// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/long_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace {

// Long series are averaged over neighbours first, which keeps the variance of their mean and bounds the cost.
constexpr std::size_t most_values = 2048;

// A series passes the limit more readily where its autocorrelation came out small by chance. Its variance is enlarged
// by 1 + shortness/(n/τ), found by simulation (tests/bench/coverage.cpp): without it 92 % of the intervals of series of
// 25 autocorrelation times hold the mean.
constexpr double shortness = 6;

double autocovariance(std::span<const double> centred, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < centred.size(); ++i) sum += centred[i] * centred[i + lag];
  return sum / static_cast<double>(centred.size() - lag);
}

// The integrated autocorrelation time, by C. J. Geyer's initial monotone sequence (Statistical Science 7, 1992, section
// 3.3): autocovariances are summed in pairs for as long as the pairs are positive. The deviations are from the sample's
// own mean, which makes every autocovariance too small by the variance of that mean; it is added back. Infinity where
// the sum does not end within a third of the series.
double geyer_autocorrelation_time(std::span<const double> centred) {
  const double variance = autocovariance(centred, 0);
  if (variance <= 0) return 1;
  const auto n = static_cast<double>(centred.size());
  double time = 1;
  for (int pass = 0; pass < 4; ++pass) {
    const double lost = variance * time / n;
    double sum = 0, before = std::numeric_limits<double>::infinity();
    bool ended = false;
    for (std::size_t lag = 0; lag + 1 < centred.size() / 3 + 2; lag += 2) {
      const double pair = autocovariance(centred, lag) + autocovariance(centred, lag + 1) + 2 * lost;
      if (pair <= 0) {
        ended = true;
        break;
      }
      sum += before = std::min(before, pair);
    }
    if (!ended) return std::numeric_limits<double>::infinity();
    time = std::max(1.0, 2 * sum / (variance + lost) - 1);
  }
  return time;
}

}  // namespace

std::optional<MeanSpread> mean_spread(std::span<const double> values) {
  if (static_cast<double>(values.size()) < least_autocorrelation_times) return std::nullopt;
  const std::size_t together = (values.size() + most_values - 1) / most_values;
  std::vector<double> series;
  for (std::size_t i = 0; i + together <= values.size(); i += together) {
    series.push_back(mean(values.subspan(i, together)));
  }
  MeanSpread spread;
  spread.mean = mean(values);
  const double centre = mean(series);
  for (double& value : series) value -= centre;
  spread.autocorrelation_time = geyer_autocorrelation_time(series);
  const auto n = static_cast<double>(series.size());
  const double times = n / spread.autocorrelation_time;
  if (!(times >= least_autocorrelation_times)) return std::nullopt;
  // In iterations: the long-run variance, which averaging over neighbours leaves as it is, over the variance of one.
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (squares > 0) {
    spread.autocorrelation_time *=
        autocovariance(series, 0) * static_cast<double>(together) * static_cast<double>(values.size()) / squares;
  }
  const int terms = std::max(4, static_cast<int>(0.8 * std::pow(times, 2.0 / 3)));
  double sum = 0;
  for (int j = 1; j <= terms; ++j) {
    double coefficient = 0;
    for (std::size_t i = 0; i < series.size(); ++i) {
      coefficient += series[i] * std::cos(std::numbers::pi * j * (static_cast<double>(i) + 0.5) / n);
    }
    sum += 2 * coefficient * coefficient / n;
  }
  spread.variance = sum / terms / n * (1 + shortness / times);
  spread.degrees = terms;
  return spread;
}

std::optional<Interval> median_interval(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double q) {
    const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
    const auto below = std::min(static_cast<std::size_t>(place), sorted.size() - 2);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[below + 1] - sorted[below]);
  };
  if (sorted.front() == sorted.back()) {
    return mean_spread(values) ? std::optional(Interval{sorted.front(), sorted.front()}) : std::nullopt;
  }
  const double median = quantile(0.5);
  std::vector<double> below;
  for (const double value : values) below.push_back(value < median ? 1 : value > median ? 0 : 0.5);
  const auto spread = mean_spread(below);
  if (!spread || !mean_spread(values)) return std::nullopt;
  const double half = t_quantile_two_sided(0.05, spread->degrees) * std::sqrt(spread->variance);
  return Interval{quantile(0.5 - half), quantile(0.5 + half)};
}

}  // namespace paceline::analysis
