// SPDX-License-Identifier: Apache-2.0
// A run whose batch grows: every epoch still takes its samples once.
#include "trainer/data/run_plan.h"

#include <gtest/gtest.h>

#include <set>

namespace paceline::train {
namespace {

const EpochPlan pass{120, 4, 1, 2};  // 15 iterations an epoch

TEST(RunPlan, OfEqualEpochsCountsLikeAnEpochPlan) {
  const RunPlan plan(pass);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(plan.at(i).epoch, i / 15);
    EXPECT_EQ(plan.at(i).iteration, i % 15);
    EXPECT_EQ(plan.ends_epoch(i), i % 15 == 14);
    EXPECT_DOUBLE_EQ(plan.epochs_before(i), static_cast<double>(i) / 15);
  }
  EXPECT_EQ(plan.first_of(3), 45u);
}

TEST(RunPlan, HasFewerIterationsWithALargerBatch) {
  const RunPlan plan(pass, BatchSchedule(1, 5, {2, 3}, 25));  // 15, 15, 3 iterations, then 25 × 8 > 120 samples: none
  ASSERT_TRUE(plan.wall());
  EXPECT_EQ(plan.wall()->plan.batch, 100u);
  EXPECT_EQ(plan.wall()->plan.iterations(), 0u);
  EXPECT_EQ(plan.wall()->epoch, 3u);
  EXPECT_EQ(plan.wall()->iteration, 33u);
  EXPECT_EQ(plan.first_of(3), 33u) << "so many there are before it";
  EXPECT_EQ(plan.at(33).epoch, 3u);
  EXPECT_EQ(plan.at(33).iteration, 0u);
  EXPECT_DOUBLE_EQ(plan.epochs_before(33), 3) << "the end of a run of 3 epochs";
  EXPECT_FALSE(RunPlan(EpochPlan{40, 4}).wall());
  const RunPlan grown(pass, BatchSchedule(1, 3, {1.5, 3}));  // 15, 15, 5, 1, 1, …
  const std::vector<std::uint64_t> lengths{15, 15, 5, 1, 1};
  std::uint64_t iteration = 0;
  for (std::uint64_t epoch = 0; epoch < lengths.size(); ++epoch) {
    EXPECT_EQ(grown.first_of(epoch), iteration) << epoch;
    const std::vector<std::uint32_t> order = epoch_order(1, epoch, pass.samples);
    std::set<std::uint32_t> seen;
    for (std::uint64_t i = 0; i < lengths[epoch]; ++i, ++iteration) {
      const RunPlan::Place place = grown.at(iteration);
      EXPECT_EQ(place.epoch, epoch);
      EXPECT_EQ(place.iteration, i);
      EXPECT_EQ(grown.ends_epoch(iteration), i + 1 == lengths[epoch]) << iteration;
      for (int rank = 0; rank < 2; ++rank) {
        EpochPlan of_rank = place.plan;
        of_rank.rank = rank;
        for (const std::uint32_t sample : of_rank.batch_of(order, i)) EXPECT_TRUE(seen.insert(sample).second);
      }
    }
    EXPECT_EQ(seen.size(), lengths[epoch] * 8 * (epoch < 2 ? 1 : epoch < 3 ? 3 : 9)) << "of epoch " << epoch;
  }
}

TEST(RunPlan, AppliesTwoBoundariesInOneEpochTogether) {
  const RunPlan plan(pass, BatchSchedule(1, 2, {0.2, 0.7, 4}));
  EXPECT_EQ(plan.at(0).plan.batch, 4u);
  EXPECT_EQ(plan.first_of(1), 15u);
  EXPECT_EQ(plan.at(15).plan.batch, 16u);
  EXPECT_EQ(plan.first_of(4), 15u + 3 * 3);
  EXPECT_EQ(plan.at(24).plan.batch, 32u);
}

}  // namespace
}  // namespace paceline::train
