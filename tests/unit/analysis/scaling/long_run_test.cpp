// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/long_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/rounds.h"

namespace paceline::analysis {
namespace {

// A stationary series around 100 with autocorrelation phi.
std::vector<double> series(std::size_t count, double phi, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  double state = normal(random);
  for (std::size_t i = 0; i < count; ++i) {
    state = phi * state + std::sqrt(1 - phi * phi) * normal(random);
    values.push_back(100 + state);
  }
  return values;
}

TEST(StudentT, HasTheQuantilesOfPublishedTables) {
  EXPECT_NEAR(t_quantile_two_sided(0.05, 1), 12.7062, 1e-4);
  EXPECT_NEAR(t_quantile_two_sided(0.05, 4), 2.7764, 1e-4);
  EXPECT_NEAR(t_quantile_two_sided(0.01, 30), 2.7500, 1e-4);
  EXPECT_NEAR(t_quantile_two_sided(0.05, 1e9), 1.95996, 1e-4);
  EXPECT_NEAR(t_two_sided(2, 2), 1 - 2 / std::sqrt(6.0), 1e-9);  // 1 − t/√(2 + t²)
}

TEST(LongRun, FindsTheAutocorrelationTime) {  // (1 + φ)/(1 − φ)
  EXPECT_NEAR(mean_spread(series(20000, 0, 1))->autocorrelation_time, 1, 0.3);
  EXPECT_NEAR(mean_spread(series(20000, 0.5, 1))->autocorrelation_time, 3, 0.7);
  EXPECT_NEAR(mean_spread(series(20000, 0.9, 1))->autocorrelation_time, 19, 6);
}

TEST(LongRun, RefusesFewerThanTwentyAutocorrelationTimes) {
  EXPECT_FALSE(mean_spread(std::vector<double>(19, 1.0)));
  EXPECT_FALSE(mean_spread(series(100, 0.99, 1)));
  std::vector<double> drift(500);
  std::iota(drift.begin(), drift.end(), 0.0);
  EXPECT_FALSE(mean_spread(drift));
  EXPECT_FALSE(median_interval(drift));
}

// 250 series each: with a true coverage of 95 %, 91 to 99 % are within three standard errors.
TEST(LongRun, IntervalsHoldTheTruthAsOftenAsTheySay) {
  for (const double phi : {0.0, 0.5, 0.9}) {
    if (test::stride(2) > 1 && phi != 0.5) continue;  // all three in the optimised build
    int means = 0, medians = 0, shown = 0;
    for (int i = 0; i < 250; ++i) {
      const auto values = series(800, phi, 1000 + i);
      const auto spread = mean_spread(values);
      const auto median = median_interval(values);
      if (!spread || !median) continue;
      ++shown;
      means +=
          std::abs(spread->mean - 100) <= t_quantile_two_sided(0.05, spread->degrees) * std::sqrt(spread->variance);
      medians += median->contains(100);
    }
    EXPECT_GT(shown, 190) << phi;
    EXPECT_NEAR(static_cast<double>(means) / shown, 0.95, 0.042) << phi;
    EXPECT_NEAR(static_cast<double>(medians) / shown, 0.95, 0.042) << phi;
  }
}

TEST(LongRun, EqualIterationsLeaveNoDoubt) {
  const std::vector<double> equal(50, 0.25);
  EXPECT_EQ(mean_spread(equal)->variance, 0);
  const auto median = median_interval(equal);
  ASSERT_TRUE(median);
  EXPECT_EQ(median->low, 0.25);
  EXPECT_EQ(median->high, 0.25);
}

}  // namespace
}  // namespace paceline::analysis
