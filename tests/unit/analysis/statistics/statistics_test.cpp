// SPDX-License-Identifier: Apache-2.0
// Quantiles agree with R's and NumPy's default (type 7), and places with R's rank() minus 1.
#include "analysis/statistics/statistics.h"

#include <gtest/gtest.h>

namespace paceline::analysis {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  using Whole = std::vector<std::int64_t>;
  EXPECT_EQ(median(Whole{3, 1, 2}), 2);
  EXPECT_EQ(median(Whole{40, 10, 30, 20}), 25);
  using Real = std::vector<double>;
  EXPECT_EQ(median(Real{3, 1, 2}), 2);
  EXPECT_EQ(median(Real{40, 10, 31, 20}), 25.5);
  EXPECT_EQ(median(Real{}), 0);
  EXPECT_EQ(mean(Real{1, 2, 6}), 3);
  EXPECT_EQ(mean(Real{}), 0);
  EXPECT_EQ(quantile({100, 0}, 0.95), 95);
  EXPECT_EQ(quantile({10, 20, 30, 40, 50}, 0.25), 20);
  EXPECT_EQ(quantile({10, 20, 30, 40, 50}, 0.95), 48);
  EXPECT_EQ(quantile({5}, 0.95), 5);
  EXPECT_EQ(quantile({5, 9}, 0), 5);
  EXPECT_EQ(quantile({5, 9}, 1), 9);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

TEST(Places, AreSharedByEqualValues) {
  EXPECT_EQ(places_of(std::vector<double>{30, 10, 20}), (std::vector<double>{2, 0, 1}));
  EXPECT_EQ(places_of(std::vector<double>{5, 1, 5, 5, 0}), (std::vector<double>{3, 1, 3, 3, 0}));
  EXPECT_EQ(places_of(std::vector<double>{7, 7}), (std::vector<double>{0.5, 0.5}));
  EXPECT_TRUE(places_of({}).empty());
}

}  // namespace
}  // namespace paceline::analysis
