// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/interval.h"

#include <cmath>

namespace paceline::analysis {
namespace {

// Above this, t is the normal distribution to six digits, and the continued fraction would need many terms.
constexpr double many_degrees = 1e5;

// The regularised incomplete beta function I_x(a, b) by its continued fraction (modified Lentz's method). The fraction
// converges fast for x < (a+1)/(a+b+2); the other half follows from I_x(a, b) = 1 − I_{1−x}(b, a).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  constexpr double tiny = 1e-300;
  double numerator_ratio = 1, denominator_ratio = 0, fraction = 1;
  for (int i = 0; i <= 2000; ++i) {
    const double m = i / 2;
    const double term = i == 0       ? 1
                        : i % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                     : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    denominator_ratio = 1 + term * denominator_ratio;
    if (std::abs(denominator_ratio) < tiny) denominator_ratio = tiny;
    denominator_ratio = 1 / denominator_ratio;
    numerator_ratio = 1 + term / numerator_ratio;
    if (std::abs(numerator_ratio) < tiny) numerator_ratio = tiny;
    const double change = numerator_ratio * denominator_ratio;
    fraction *= change;
    if (i > 0 && std::abs(change - 1) < 1e-14) break;
  }
  const double front =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  return front * (fraction - 1);
}

}  // namespace

double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

double t_two_sided(double value, double degrees) {
  const double t = std::abs(value);
  if (degrees > many_degrees) return std::erfc(t / std::sqrt(2.0));
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double t_quantile_two_sided(double probability, double degrees) {
  double low = 0, high = 2;
  while (t_two_sided(high, degrees) > probability && high < 1e12) high *= 2;
  while (high - low > 1e-10 * high) {
    const double middle = (low + high) / 2;
    (t_two_sided(middle, degrees) > probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace paceline::analysis
