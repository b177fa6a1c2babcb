// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/laws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace paceline::analysis {
namespace {

TEST(Laws, AmdahlsLawOfAKnownShare) {
  EXPECT_DOUBLE_EQ(amdahl_speedup(0, 8), 8);
  EXPECT_DOUBLE_EQ(amdahl_speedup(1, 8), 1);
  EXPECT_DOUBLE_EQ(amdahl_speedup(0.1, 4), 4 / 1.3);
}

TEST(Laws, GustafsonsLawOfAKnownShare) {
  EXPECT_DOUBLE_EQ(gustafson_speedup(0, 8), 8);
  EXPECT_DOUBLE_EQ(gustafson_speedup(0.25, 8), 6.25);
}

TEST(Laws, KarpFlattGivesBackAmdahlsShare) {
  for (const double n : {2.0, 4.0, 64.0}) EXPECT_NEAR(karp_flatt(amdahl_speedup(0.07, n), n), 0.07, 1e-15);
}

TEST(Laws, UslWithoutCoherencyIsAmdahlsLaw) {
  EXPECT_DOUBLE_EQ((Usl{0.1, 0}.capacity(4)), amdahl_speedup(0.1, 4));
  EXPECT_TRUE(std::isinf((Usl{0.1, 0}.peak_ranks())));
  EXPECT_DOUBLE_EQ((Usl{0.1, 0.001}.peak_ranks()), 30);
}

TEST(Laws, FitsGiveBackTheLawThatMadeThePoints) {
  std::vector<SpeedupPoint> amdahl, scaled;
  for (const double n : {2.0, 4.0, 8.0, 16.0, 32.0, 64.0}) {
    amdahl.push_back({n, amdahl_speedup(0.037, n)});
    scaled.push_back({n, 0.9 * amdahl_speedup(0.037, n)});
  }
  EXPECT_NEAR(fit_amdahl(amdahl), 0.037, 1e-8);
  EXPECT_NEAR(fit_amdahl_free_start(scaled), 0.037, 1e-8);
}

TEST(Laws, AmdahlThroughOnePointIsItsKarpFlatt) {
  const std::vector<SpeedupPoint> one{{2, 1.7}};
  EXPECT_NEAR(fit_amdahl(one), karp_flatt(1.7, 2), 1e-8);
}

TEST(Laws, FitsStayWithinTheirRanges) {
  const std::vector<SpeedupPoint> faster{{2, 2.3}, {4, 4.9}}, slower{{2, 0.5}, {4, 0.4}};
  EXPECT_NEAR(fit_amdahl(faster), 0, 1e-9);
  EXPECT_NEAR(fit_amdahl(slower), 1, 1e-9);
}

}  // namespace
}  // namespace paceline::analysis
