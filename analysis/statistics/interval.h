// SPDX-License-Identifier: Apache-2.0
// A 95 % interval, and Student's t distribution, which gives its width where the noise is estimated from few values.
#pragma once

namespace paceline::analysis {

struct Interval {
  double low = 0, high = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

// ln Γ(x) for x > 0. std::lgamma also writes a global variable, which threads must not share.
double log_gamma(double x);

// P(|t| > value) for the given degrees of freedom (above 0, need not be whole), by the incomplete beta function:
// NIST Digital Library of Mathematical Functions, 8.17.22 (continued fraction), and Abramowitz and Stegun, 26.7.1.
double t_two_sided(double value, double degrees);

// The t with P(|t| > value) = probability. For 0.05 and many degrees of freedom it is 1.96.
double t_quantile_two_sided(double probability, double degrees);

}  // namespace paceline::analysis
