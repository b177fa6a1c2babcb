// Quantiles agree with R's and NumPy's default (type 7).
#include "analysis/metrics/statistics.h"

#include <gtest/gtest.h>

namespace paceline::analysis {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({40, 10, 30, 20}), 25);
  EXPECT_EQ(quantile({100, 0}, 0.95), 95);
  EXPECT_EQ(quantile({10, 20, 30, 40, 50}, 0.25), 20);
  EXPECT_EQ(quantile({10, 20, 30, 40, 50}, 0.95), 48);
  EXPECT_EQ(quantile({5}, 0.95), 5);
  EXPECT_EQ(quantile({5, 9}, 0), 5);
  EXPECT_EQ(quantile({5, 9}, 1), 9);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace paceline::analysis
