// SPDX-License-Identifier: Apache-2.0
// How well the iterations of one run determine their mean and their median. Neighbouring iterations are alike (a warm
// cache, a slow minute), so n iterations contain as much information as n/τ independent ones, where τ is the
// autocorrelation time. An iteration is one value for all ranks together. No random numbers are drawn.
#pragma once

#include <optional>
#include <span>

#include "analysis/statistics/interval.h"

namespace paceline::analysis {

// A shorter run does not determine the autocorrelation itself, so there is no interval.
inline constexpr double least_autocorrelation_times = 20;

struct MeanSpread {
  double mean = 0;
  double variance = 0;              // of the mean
  double degrees = 0;               // Student's degrees of freedom of that variance
  double autocorrelation_time = 1;  // τ, in iterations
};

// The variance of the mean of a stationary series, by the equal-weighted cosine estimator: E. Lazarus, D. J. Lewis,
// J. H. Stock, M. W. Watson, "HAR Inference: Recommendations for Practice", J. Business & Economic Statistics 36(4),
// 2018, section 2. The mean of the B lowest squared cosine coefficients estimates the long-run variance with B degrees
// of freedom. In the paper B grows with the length alone. Here it grows with n/τ, which keeps the bias small for any
// τ. Nothing if the series is shorter than 20 τ.
std::optional<MeanSpread> mean_spread(std::span<const double> values);

// The 95 % interval of the median: R. S. Woodruff, "Confidence intervals for medians and other position measures",
// JASA 47, 1952. The share of values below the median has a spread as above; its ends are carried back to the values.
std::optional<Interval> median_interval(std::span<const double> values);

}  // namespace paceline::analysis
