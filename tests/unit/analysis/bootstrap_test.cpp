#include "analysis/scaling/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace paceline::analysis {
namespace {

std::vector<double> independent(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(1 + static_cast<double>(random() >> 11) / 0x1p53);
  return values;
}

TEST(Bootstrap, ASeedGivesOneIntervalAndAnotherSeedAnother) {
  const auto values = independent(100);
  const auto a = bootstrap_median(values, 1), b = bootstrap_median(values, 1), c = bootstrap_median(values, 2);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_TRUE(a.low != c.low || a.high != c.high);
}

TEST(Bootstrap, EqualIterationsLeaveNoDoubt) {
  const std::vector<std::vector<double>> runs{std::vector<double>(50, 0.25)};
  for (const auto& total : bootstrap_totals(runs)) EXPECT_DOUBLE_EQ(total[0], 12.5);
}

TEST(Bootstrap, TheIntervalOfASumHasTheWidthThatTheoryGives) {
  // Independent values with variance v: a sum of n has the standard deviation sqrt(n v); the interval is ±1.96 of it.
  const std::vector<std::vector<double>> runs{independent(1000)};
  const auto totals = bootstrap_totals(runs);
  std::vector<double> sums;
  for (const auto& total : totals) sums.push_back(total[0]);
  const double sum = std::accumulate(runs[0].begin(), runs[0].end(), 0.0);
  const Interval interval = middle_95(sums);
  EXPECT_LT(interval.low, sum);
  EXPECT_GT(interval.high, sum);
  const double theory = 2 * 1.96 * std::sqrt(1000.0 / 12);
  EXPECT_NEAR(interval.high - interval.low, theory, 0.1 * theory);
  const double mean = std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(sums.size());
  EXPECT_NEAR(mean, sum, 0.005 * sum);  // a ring has no edges that are drawn more seldom
}

TEST(Bootstrap, BlocksKeepNeighboursTogether) {
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), 0.0);
  std::vector<double> drawn;
  BlockResampler(3).draw(values, drawn);
  ASSERT_EQ(drawn.size(), values.size());
  int neighbours = 0;
  for (std::size_t i = 1; i < drawn.size(); ++i) neighbours += drawn[i] == std::fmod(drawn[i - 1] + 1, 1000);
  EXPECT_GE(neighbours, 900);  // blocks of ten: nine of ten steps stay inside one
}

TEST(Bootstrap, QuantilesInterpolate) {
  const std::vector<double> values{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
}

}  // namespace
}  // namespace paceline::analysis
