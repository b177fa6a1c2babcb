// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/autocorrelation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/rounds.h"

namespace paceline::analysis {
namespace {

// An AR(1) process, with white noise of `white` of its standard deviation added.
std::vector<double> centred_ar1(std::size_t count, double phi, double white = 0) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise;
  std::vector<double> values(count);
  const double deviation = 1 / std::sqrt(1 - phi * phi);
  double value = noise(random) * deviation;
  for (double& each : values) {
    value = phi * value + noise(random);
    each = value + white * deviation * noise(random);
  }
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count);
  for (double& each : values) each -= mean;
  return values;
}

TEST(AutocorrelationTime, IsThatOfTheProcess) {
  EXPECT_NEAR(autocorrelation_time(centred_ar1(20'000, 0), 1), 1, 0.1);
  EXPECT_NEAR(autocorrelation_time(centred_ar1(20'000, 0.5), 1), 3, 0.4);
  EXPECT_NEAR(autocorrelation_time(centred_ar1(20'000, 0.9), 1), 19, 5);
}

// Neighbours are averaged. τ = 1 + ½ (399 - 1); the white noise keeps the bound that an AR(1) process of the same first
// autocorrelation sets out of the way. The estimate has a standard error of 20 %, and the bound is 30 %.
TEST(AutocorrelationTime, OfValuesThatStayAlikeForLongIsThatOfTheProcess) {
  if (test::stride(2) > 1) GTEST_SKIP() << "half a minute with sanitizers";
  EXPECT_NEAR(autocorrelation_time(centred_ar1(500'000, 0.995, 1), 1), 200, 60);
}

// 10^11 products without averaging.
TEST(AutocorrelationTime, OfAMillionRisingValuesTakesNoTime) {
  const std::size_t count = 1'000'000 / test::stride(20);
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 0.5 - 0.5 * static_cast<double>(count));
  EXPECT_GT(autocorrelation_time(values, 1), static_cast<double>(count) / 20);
}

}  // namespace
}  // namespace paceline::analysis
