// SPDX-License-Identifier: Apache-2.0
// The spread of the time of a run, and the interval of any figure that is computed from times.
//
// Times are compared as logarithms, because their noise is relative: a ratio becomes a difference, and its interval is
// Welch's (B. L. Welch, Biometrika 34, 1947).
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "analysis/statistics/interval.h"

namespace paceline::analysis {

enum class SpreadSource {
  none,            // one run whose iterations are not known
  two_repeats,     // too few for an interval
  equal_repeats,   // equal to the last digit, which shows rounding and no noise
  few_iterations,  // one run, shorter than 20 autocorrelation times of its iterations
  iterations,      // one run: the variation within it
  repeats,         // three or more
  given            // by --noise or a column seconds_sd
};

// The variance of the logarithm of a point's mean time, and its degrees of freedom.
struct Spread {
  SpreadSource source = SpreadSource::none;
  double variance = 0, degrees = 0;
  bool known() const { return source >= SpreadSource::iterations; }
};

// An interval may rest on iterations or on repeats, but not on both.
bool have_interval(std::span<const Spread* const> spreads);

using Estimator = std::function<double(std::span<const double>)>;

// The value of an estimator at the logarithms, its standard error by the delta method, and the degrees of freedom of
// that error (F. E. Satterthwaite, Biometrics Bulletin 2, 1946).
struct Estimate {
  double value = 0, error = 0, degrees = 1;
};
Estimate estimate_of(std::span<const double> logs, std::span<const Spread* const> spreads, const Estimator& estimator);

// The interval that misses the truth with the given probability. Its ends are the estimator's values where the
// logarithms are moved by t standard errors in the direction in which the estimate varies most (the least favourable
// family: B. Efron, JASA 82, 1987, section 4), so that a figure that is a function of one ratio has exactly the ratio's
// interval. Nothing where it is not finite.
std::optional<Interval> interval_of(std::span<const double> logs, std::span<const Spread* const> spreads,
                                    const Estimator& estimator, double miss = 0.05);

}  // namespace paceline::analysis
