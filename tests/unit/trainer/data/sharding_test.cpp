// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/sharding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace paceline::train {
namespace {

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::uint32_t> counted(std::size_t count) {
  std::vector<std::uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0u);
  return values;
}

TEST(EpochOrder, HoldsEverySampleOnce) {
  for (const std::size_t samples : {0, 1, 2, 1000}) {
    EXPECT_EQ(sorted(epoch_order(7, 3, samples)), counted(samples));
  }
}

TEST(EpochOrder, IsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(epoch_order(7, 3, 1000), epoch_order(7, 3, 1000));
  EXPECT_NE(epoch_order(7, 3, 1000), epoch_order(7, 4, 1000));
  EXPECT_NE(epoch_order(7, 3, 1000), epoch_order(8, 3, 1000));
}

// In 6,000 epochs each of the 6 orders of 3 samples comes 1,000 times, within 4 standard deviations (115).
TEST(EpochOrder, IsUniform) {
  std::vector<int> seen(27);
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const auto order = epoch_order(1, epoch, 3);
    ++seen[order[0] * 9 + order[1] * 3 + order[2]];
  }
  std::erase(seen, 0);
  EXPECT_EQ(seen.size(), 6u);
  for (const int count : seen) EXPECT_NEAR(count, 1000, 115);
}

TEST(EpochPlan, GivesEachSampleToOneRankOnce) {
  for (const int ranks : {1, 2, 3, 4}) {
    const std::size_t samples = 5 * 4 * static_cast<std::size_t>(ranks);
    const auto order = epoch_order(1, 0, samples);
    std::vector<std::uint32_t> taken;
    for (int rank = 0; rank < ranks; ++rank) {
      const EpochPlan plan{samples, 4, rank, ranks};
      ASSERT_EQ(plan.iterations(), 5u);
      for (std::size_t i = 0; i < plan.iterations(); ++i) {
        const auto batch = plan.batch_of(order, i);
        taken.insert(taken.end(), batch.begin(), batch.end());
      }
    }
    EXPECT_EQ(sorted(taken), counted(samples)) << ranks << " ranks";
  }
}

TEST(EpochPlan, DropsLessThanOneIterationsWorth) {
  for (const int ranks : {1, 2, 3, 4}) {
    const std::size_t per_iteration = 4 * static_cast<std::size_t>(ranks);
    for (std::size_t samples = 0; samples < 60; ++samples) {
      const EpochPlan plan{samples, 4, 0, ranks};
      EXPECT_LE(plan.iterations() * per_iteration, samples);
      EXPECT_LT(samples, (plan.iterations() + 1) * per_iteration);
    }
  }
}

TEST(EpochPlan, EqualLengthUsesEverySampleAndTheFirstOnesTwice) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const std::size_t samples : {1, 7, 24, 25, 59}) {
      const EpochPlan plan{samples, 4, 0, ranks, true};
      const std::size_t per_iteration = 4 * static_cast<std::size_t>(ranks), taken = plan.iterations() * per_iteration;
      EXPECT_GE(taken, samples);
      EXPECT_LT(taken, samples + per_iteration);
      const auto order = plan.order(1, 2), once = epoch_order(1, 2, samples);
      ASSERT_EQ(order.size(), taken);
      for (std::size_t i = 0; i < taken; ++i) EXPECT_EQ(order[i], once[i % samples]);
    }
  }
  EXPECT_EQ((EpochPlan{59, 4, 0, 2, false}.order(1, 2)), epoch_order(1, 2, 59));
}

TEST(EpochPlan, TwoRanksTogetherHaveTheSamplesOfOneWithTwiceTheBatch) {
  const auto order = epoch_order(1, 0, 64);
  const EpochPlan whole{64, 8, 0, 1}, first{64, 4, 0, 2}, second{64, 4, 1, 2};
  ASSERT_EQ(first.iterations(), whole.iterations());
  for (std::size_t i = 0; i < whole.iterations(); ++i) {
    std::vector<std::uint32_t> both;
    for (const auto& plan : {first, second}) {
      const auto batch = plan.batch_of(order, i);
      both.insert(both.end(), batch.begin(), batch.end());
    }
    const auto expected = whole.batch_of(order, i);
    EXPECT_TRUE(std::equal(both.begin(), both.end(), expected.begin(), expected.end()));
  }
}

TEST(Parts, CoverTheSamplesAndDifferByAtMostOne) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const std::size_t samples : {0, 1, 5, 101, 1024}) {
      std::size_t next = 0, smallest = samples, largest = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice part = part_of(samples, rank, ranks);
        EXPECT_EQ(part.first, next);
        next += part.count;
        smallest = std::min(smallest, part.count);
        largest = std::max(largest, part.count);
      }
      EXPECT_EQ(next, samples);
      EXPECT_LE(largest - smallest, 1u);
    }
  }
}

}  // namespace
}  // namespace paceline::train
