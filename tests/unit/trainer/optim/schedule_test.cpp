// SPDX-License-Identifier: Apache-2.0
// Learning-rate and batch schedules against the tables of their papers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/optim/batch_schedule.h"
#include "trainer/optim/rate_plan.h"
#include "trainer/optim/schedule.h"

namespace paceline::train {
namespace {

TEST(Schedule, ConstantStaysTheSame) {
  EXPECT_EQ(constant_rate(0.05)(0), 0.05);
  EXPECT_EQ(constant_rate(0.05)(1000000), 0.05);
}

TEST(Schedule, SteppedChangesAtEachBoundaryItself) {
  const Schedule rate = stepped_rate(0.1, 0.1, {30, 60});
  EXPECT_DOUBLE_EQ(rate(29), 0.1);
  EXPECT_DOUBLE_EQ(rate(30), 0.01);
  EXPECT_DOUBLE_EQ(rate(59), 0.01);
  EXPECT_DOUBLE_EQ(rate(60), 0.001);
}

TEST(Schedule, CosineGoesFromTheRateThroughItsHalfToZeroAndStaysThere) {
  const Schedule rate = cosine_rate(0.4, 100);
  EXPECT_DOUBLE_EQ(rate(0), 0.4);
  EXPECT_DOUBLE_EQ(rate(25), 0.2 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(rate(50), 0.2);
  EXPECT_NEAR(rate(100), 0, 1e-16);
  EXPECT_NEAR(rate(150), 0, 1e-16);
}

TEST(Schedule, WarmUpIsLinearAndMeetsTheScheduleItLeadsTo) {
  const Schedule rate = warmed_up(cosine_rate(0.8, 100), 0.1, 20);
  const double met = 0.4 * (1 + std::cos(M_PI * 0.2));
  EXPECT_DOUBLE_EQ(rate(0), 0.1);
  EXPECT_DOUBLE_EQ(rate(10), (0.1 + met) / 2);
  EXPECT_DOUBLE_EQ(rate(20), met);
  EXPECT_DOUBLE_EQ(rate(60), cosine_rate(0.8, 100)(60));
}

TEST(Schedule, PolynomialOfPowerTwoIsTheSquareOfTheRemainingFraction) {
  const Schedule rate = polynomial_rate(0.8, 100, 2);
  EXPECT_DOUBLE_EQ(rate(0), 0.8);
  EXPECT_DOUBLE_EQ(rate(50), 0.2);
  EXPECT_NEAR(rate(90), 0.008, 1e-15);
  EXPECT_EQ(rate(100), 0);
  EXPECT_EQ(rate(120), 0);
}

// Akiba et al.: η_b = 12.8 at a batch of 32,768; 0.5 η_b, 0.075 η_b, 0.01 η_b, 0.001 η_b for 40, 30, 15, 5 epochs.
TEST(Schedule, SlowStartHasThePapersRates) {
  constexpr std::int64_t epoch = 40;
  const Schedule rate = slow_start_rate(12.8, 90 * epoch);
  EXPECT_DOUBLE_EQ(rate(0), 6.4);
  EXPECT_DOUBLE_EQ(rate(40 * epoch - 1), 6.4);
  EXPECT_DOUBLE_EQ(rate(40 * epoch), 0.96);
  EXPECT_DOUBLE_EQ(rate(70 * epoch - 1), 0.96);
  EXPECT_DOUBLE_EQ(rate(70 * epoch), 0.128);
  EXPECT_DOUBLE_EQ(rate(85 * epoch - 1), 0.128);
  EXPECT_DOUBLE_EQ(rate(85 * epoch), 0.0128);
  EXPECT_DOUBLE_EQ(rate(90 * epoch - 1), 0.0128);
}

// Goyal et al.: η = 0.1 at 256; 8,192 images and η = 3.2; 5 epochs of warm-up; ÷ 10 at epochs 30, 60 and 80 of 90.
constexpr std::int64_t per_epoch = 156;

RateOptions goyal(const std::string& warmup) {
  RateOptions options;
  options.rate = 0.1;
  options.scaling = "linear";
  options.schedule = "step";
  options.step_epochs = {30, 60, 80};
  options.warmup = warmup;
  options.warmup_epochs = 5;
  return options;
}

TEST(RatePlan, GoyalsGradualWarmUpRisesIterationByIteration) {
  const Schedule rate = plan_rate(goyal("gradual"), 8192, 90 * per_epoch, per_epoch);
  EXPECT_DOUBLE_EQ(rate(0), 0.1);
  for (std::int64_t i = 0; i < 5 * per_epoch; ++i) {
    EXPECT_NEAR(rate(i + 1) - rate(i), 3.1 / (5 * per_epoch), 1e-12) << i;
  }
  EXPECT_DOUBLE_EQ(rate(5 * per_epoch), 3.2);
  EXPECT_DOUBLE_EQ(rate(30 * per_epoch - 1), 3.2);
  EXPECT_DOUBLE_EQ(rate(30 * per_epoch), 0.32);
  EXPECT_DOUBLE_EQ(rate(60 * per_epoch - 1), 0.32);
  EXPECT_DOUBLE_EQ(rate(60 * per_epoch), 0.032);
  EXPECT_DOUBLE_EQ(rate(80 * per_epoch - 1), 0.032);
  EXPECT_NEAR(rate(80 * per_epoch), 0.0032, 1e-15);
  EXPECT_NEAR(rate(90 * per_epoch - 1), 0.0032, 1e-15);
}

TEST(RatePlan, GoyalsConstantWarmUpHasTheSmallBatchesRateThroughout) {
  const Schedule rate = plan_rate(goyal("constant"), 8192, 90 * per_epoch, per_epoch);
  EXPECT_DOUBLE_EQ(rate(0), 0.1);
  EXPECT_DOUBLE_EQ(rate(5 * per_epoch - 1), 0.1);
  EXPECT_DOUBLE_EQ(rate(5 * per_epoch), 3.2);
}

TEST(RatePlan, WithoutWarmUpTheFirstRateIsTheScaledOne) {
  EXPECT_DOUBLE_EQ(plan_rate(goyal("none"), 8192, 90 * per_epoch, per_epoch)(0), 3.2);
}

TEST(RatePlan, ScalesLinearlyOrWithTheSquareRoot) {
  RateOptions options;
  options.rate = 0.1;
  options.base_batch = 128;
  EXPECT_EQ(scaled_rate(options, 2048), 0.1);
  options.scaling = "linear";
  EXPECT_DOUBLE_EQ(scaled_rate(options, 2048), 1.6);
  options.scaling = "sqrt";
  EXPECT_DOUBLE_EQ(scaled_rate(options, 2048), 0.4);
  options.scaling = "cubic";
  EXPECT_THROW(scaled_rate(options, 2048), std::invalid_argument);
}

TEST(RatePlan, TheWarmUpsFirstRateCanBeGiven) {
  RateOptions options = goyal("gradual");
  options.warmup_rate = 0.5;
  EXPECT_DOUBLE_EQ(plan_rate(options, 8192, 90 * per_epoch, per_epoch)(0), 0.5);
}

TEST(RatePlan, WithoutScalingGradualWarmUpStartsJustAboveZeroAndConstantWarmUpNeedsARate) {
  RateOptions options = goyal("gradual");
  options.scaling = "none";
  EXPECT_DOUBLE_EQ(plan_rate(options, 8192, 90 * per_epoch, per_epoch)(0), 0.1 / (5 * per_epoch + 1));
  options.warmup = "constant";
  EXPECT_THROW(plan_rate(options, 8192, 90 * per_epoch, per_epoch), std::invalid_argument);
}

TEST(RatePlan, DefaultStepsAreAtHalfAndThreeQuartersOfTheRun) {
  RateOptions options;
  options.schedule = "step";
  options.rate = 1;
  options.warmup = "none";
  const Schedule rate = plan_rate(options, 32, 1000, 100);
  EXPECT_DOUBLE_EQ(rate(499), 1);
  EXPECT_DOUBLE_EQ(rate(500), 0.1);
  EXPECT_DOUBLE_EQ(rate(749), 0.1);
  EXPECT_DOUBLE_EQ(rate(750), 0.01);
}

// Hoffer et al.: a batch 16 times as large gets the small batch's number of updates before each drop of the rate.
TEST(RatePlan, RegimeAdaptationKeepsTheNumberOfUpdatesBeforeEachStep) {
  RateOptions options = goyal("none");
  options.base_batch = 128;
  const std::int64_t small_epoch = 390, large_epoch = small_epoch / 15;  // 26 updates of a batch 15 times as large
  const Schedule small = plan_rate(options, 128, 90 * small_epoch, small_epoch);
  options.scaling = "none";
  options.regime_adaptation = true;
  EXPECT_DOUBLE_EQ(stretch(options, 128 * 15), 15);
  const Schedule large = plan_rate(options, 128 * 15, 15 * 90 * large_epoch, large_epoch);
  for (const std::int64_t boundary : {30, 60, 80}) {
    for (const std::int64_t update : {boundary * small_epoch - 1, boundary * small_epoch}) {
      EXPECT_DOUBLE_EQ(large(update), small(update)) << update;
    }
  }
}

TEST(RatePlan, RefusesUnknownNames) {
  RateOptions options = goyal("sudden");
  EXPECT_THROW(plan_rate(options, 256, 900, 10), std::invalid_argument);
  options = goyal("none");
  options.schedule = "staircase";
  EXPECT_THROW(plan_rate(options, 256, 900, 10), std::invalid_argument);
}

// Smith et al., figure 1: at epochs 60, 120 and 160 the rate falls by 5, or else the batch of 128 grows to 640, 3,200
// and 16,000; the noise ε ÷ B is the same either way.
TEST(BatchSchedule, GrowsAtTheStepsOfTheRateAndKeepsTheNoise) {
  const std::vector<double> boundaries{60, 120, 160};
  const BatchSchedule grow(1, 5, boundaries);
  EXPECT_EQ(grow.absorbed(), 3u);
  RateOptions options;
  options.rate = 0.1;
  options.schedule = "step";
  options.step_epochs = boundaries;
  options.step_factor = 0.2;
  options.warmup = "none";
  const Schedule decayed = plan_rate(options, 128, 200, 1);
  const Schedule kept = plan_rate(options, 128, 200, 1, grow.absorbed());
  const std::vector<std::int64_t> batches{128, 640, 3200, 16000};
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
    const std::int64_t batch = 128 * grow.accumulate(static_cast<double>(epoch));
    EXPECT_EQ(batch, batches[(epoch >= 60) + (epoch >= 120) + (epoch >= 160)]) << epoch;
    EXPECT_EQ(kept(epoch), 0.1);
    EXPECT_NEAR(kept(epoch) / static_cast<double>(batch), decayed(epoch) / 128, 1e-12) << epoch;
  }
}

TEST(BatchSchedule, LowersTheRateBeyondTheLimit) {
  const BatchSchedule grow(2, 5, {60, 120, 160}, 60);  // 2, 10, 50; 250 is too large
  EXPECT_EQ(grow.absorbed(), 2u);
  EXPECT_EQ(grow.largest(), 50);
  EXPECT_EQ(grow.accumulate(59.99), 2);
  EXPECT_EQ(grow.accumulate(60), 10);
  EXPECT_EQ(grow.accumulate(120), 50);
  EXPECT_EQ(grow.accumulate(199), 50);
  RateOptions options;
  options.rate = 0.1;
  options.schedule = "step";
  options.step_epochs = {60, 120, 160};
  options.warmup = "none";
  const Schedule rate = plan_rate(options, 128, 200, 1, grow.absorbed());
  EXPECT_DOUBLE_EQ(rate(159), 0.1);
  EXPECT_DOUBLE_EQ(rate(160), 0.01);
}

TEST(BatchSchedule, AcceptsFractionalFactors) {
  const BatchSchedule grow(4, 1.5, {1, 2, 3});  // 4, 6, 9, 13.5
  EXPECT_EQ(grow.accumulate(0), 4);
  EXPECT_EQ(grow.accumulate(1), 6);
  EXPECT_EQ(grow.accumulate(2), 9);
  EXPECT_EQ(grow.accumulate(3), 14);
  EXPECT_EQ(BatchSchedule().accumulate(100), 1);
  EXPECT_THROW(BatchSchedule(0), std::invalid_argument);
}

}  // namespace
}  // namespace paceline::train
