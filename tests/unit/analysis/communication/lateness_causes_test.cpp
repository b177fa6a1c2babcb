// SPDX-License-Identifier: Apache-2.0
// When a late rank is late, and in which phase it loses the time.
#include "analysis/communication/lateness_causes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace paceline::analysis {
namespace {

// Two ranks; rank 1 is behind by late(i) ms in iteration i, which has the number i + 100.
LatenessTable table_of(std::size_t iterations, const std::function<double(std::size_t)>& late) {
  std::mt19937_64 random(4);
  std::normal_distribution<double> noise(0, 1e4);
  LatenessTable table;
  table.ranks = 2;
  table.collectives = 1;
  for (std::size_t i = 0; i < iterations; ++i) {
    const double behind = 1e6 * late(i) + noise(random);
    table.numbers.push_back(static_cast<std::int64_t>(i) + 100);
    table.late_ns.insert(table.late_ns.end(), {-behind / 2, behind / 2});
    table.behind_ns.insert(table.behind_ns.end(), {-behind, behind});
    table.others_wait_ns.insert(table.others_wait_ns.end(), {0, behind});
    table.step_ns.push_back(1e8);
  }
  return table;
}

using Shape = LatenessPattern::Shape;

TEST(LatenessPatterns, ASteadyDelayIsSteady) {
  EXPECT_EQ(lateness_pattern(table_of(100, [](std::size_t) { return 30; }), 1).shape, Shape::steady);
  EXPECT_EQ(lateness_pattern(table_of(100, [](std::size_t) { return 30; }), 1).affected, 100U);
}

TEST(LatenessPatterns, ASuddenDelayHasItsIteration) {
  const auto since = lateness_pattern(table_of(100, [](std::size_t i) { return i < 60 ? 0 : 30; }), 1);
  EXPECT_EQ(since.shape, Shape::since);
  EXPECT_EQ(since.at, 160);
  const auto until = lateness_pattern(table_of(100, [](std::size_t i) { return i < 60 ? 30 : 0; }), 1);
  EXPECT_EQ(until.shape, Shape::until);
  EXPECT_EQ(until.at, 160);
}

TEST(LatenessPatterns, ADelayInEveryTenthIterationIsPeriodic) {
  const auto pattern = lateness_pattern(table_of(100, [](std::size_t i) { return i % 10 == 3 ? 30 : 0; }), 1);
  EXPECT_EQ(pattern.shape, Shape::periodic);
  EXPECT_EQ(pattern.at, 103);
  EXPECT_EQ(pattern.period, 10U);
}

// The noise is as large as the delay.
TEST(LatenessPatterns, ADelayInEveryThirdIterationIsPeriodicThoughNoiseHidesIt) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 30);
  const auto pattern =
      lateness_pattern(table_of(300, [&](std::size_t i) { return (i % 3 == 1 ? 30 : 0) + noise(random); }), 1);
  EXPECT_EQ(pattern.shape, Shape::periodic);
  EXPECT_EQ(pattern.at, 101);
  EXPECT_EQ(pattern.period, 3U);
  EXPECT_EQ(pattern.affected, 100U);
  const auto steady = lateness_pattern(table_of(300, [&](std::size_t) { return 30 + noise(random); }), 1);
  EXPECT_EQ(steady.shape, Shape::steady);
  EXPECT_LT(steady.affected, 270U);  // not in nearly each iteration
}

// The iterations in between are late by chance, so that those with a delay have less than four fifths of the lateness.
TEST(LatenessPatterns, ALongPeriodIsNotTakenForAPartOfIt) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> noise(0.2);
  const auto pattern =
      lateness_pattern(table_of(150, [&](std::size_t i) { return (i % 20 == 4 ? 100 : 0) + noise(random); }), 1);
  EXPECT_EQ(pattern.shape, Shape::periodic);
  EXPECT_EQ(pattern.at, 104);
  EXPECT_EQ(pattern.period, 20U);
  EXPECT_EQ(pattern.affected, 8U);
}

TEST(LatenessPatterns, LongTailedNoiseHasNoPeriod) {
  std::size_t periodic = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> noise(0, 1.5);
    const auto pattern = lateness_pattern(table_of(300, [&](std::size_t) { return noise(random); }), 1);
    periodic += pattern.shape == Shape::periodic ? 1 : 0;
  }
  EXPECT_LE(periodic, 2U);
}

// Five or six values of skewed noise are often all large, and there are many periods of which so few repeat.
TEST(LatenessPatterns, SkewedNoiseHasNoLongPeriod) {
  std::size_t periodic = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> noise(1);
    const auto pattern = lateness_pattern(table_of(900, [&](std::size_t) { return noise(random) - 0.8; }), 1);
    periodic += pattern.shape == Shape::periodic ? 1 : 0;
  }
  EXPECT_LE(periodic, 1U);
}

// The waves take 4, 5 and 4⅓ iterations, so that iterations at equal distances are late. They are early in between.
TEST(LatenessPatterns, AWaveAboutASteadyDelayIsSteady) {
  for (const double period : {4.0, 5.0, 13.0 / 3}) {
    const auto wave = [&](std::size_t i) { return std::sin(2 * M_PI * static_cast<double>(i) / period + 1.5); };
    const auto pattern = lateness_pattern(table_of(900, [&](std::size_t i) { return 20 + 100 * wave(i); }), 1);
    EXPECT_EQ(pattern.shape, Shape::steady) << period;
  }
}

TEST(LatenessPatterns, DelaysWithoutAPeriodAreSingle) {
  const auto pattern =
      lateness_pattern(table_of(100, [](std::size_t i) { return i == 3 || i == 10 || i == 70 ? 30 : 0; }), 1);
  EXPECT_EQ(pattern.shape, Shape::single);
  EXPECT_EQ(pattern.affected, 3U);
}

std::vector<Iteration> iterations_with(std::int64_t preprocess_ns, std::int64_t backward_ns) {
  std::vector<Iteration> iterations;
  for (std::int64_t number = 90; number < 210; ++number) {
    Iteration iteration;
    iteration.number = number;
    iteration.duration_ns = 100'000'000;
    iteration.phase_ns[static_cast<std::size_t>(Phase::preprocess)] = preprocess_ns;
    iteration.phase_ns[static_cast<std::size_t>(Phase::backward)] = backward_ns;
    iteration.phase_ns[static_cast<std::size_t>(Phase::communication)] = 100'000'000 - preprocess_ns - backward_ns;
    iterations.push_back(iteration);
  }
  return iterations;
}

TEST(LatenessCauses, ThePhaseThatTakesLongerIsNamed) {
  const LatenessTable table = table_of(100, [](std::size_t) { return 30; });
  const std::vector<Iteration> usual = iterations_with(10'000'000, 40'000'000);
  const std::vector<Iteration> loader = iterations_with(39'000'000, 40'500'000);
  const std::span<const Iteration> ranks[] = {usual, loader};
  const auto slow = slow_phase(table, ranks, {.rank = 1, .behind_ns = 30e6});
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->phase, Phase::preprocess);
  EXPECT_DOUBLE_EQ(slow->ns, 29e6);
  EXPECT_NEAR(slow->share_of_delay, 29.0 / 30, 1e-12);
}

TEST(LatenessCauses, AnEvaluationBetweenIterationsIsNamed) {
  const LatenessTable table = table_of(100, [](std::size_t i) { return i % 20 == 19 ? 600 : 0; });
  std::vector<Iteration> usual = iterations_with(10'000'000, 40'000'000), evaluates = usual;
  std::vector<Interlude> interludes;
  std::int64_t now = 0;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    usual[i].start_ns = static_cast<std::int64_t>(i) * 100'000'000;
    if (evaluates[i].number % 20 == 19) interludes.push_back({now, now += 600'000'000, Phase::evaluate});
    evaluates[i].start_ns = now;
    now += 100'000'000;
  }
  const std::span<const Iteration> ranks[] = {usual, evaluates};
  const std::span<const Interlude> of_ranks[] = {{}, interludes};
  const auto slow = slow_phase(table, ranks, {.rank = 1, .behind_ns = 30e6}, of_ranks);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->phase, Phase::evaluate);
  EXPECT_DOUBLE_EQ(slow->ns, 30e6);  // five times in 100 iterations
}

TEST(LatenessCauses, NoPhaseIsNamedIfNoneExplainsHalfOfTheDelay) {
  const LatenessTable table = table_of(100, [](std::size_t) { return 30; });
  const std::vector<Iteration> usual = iterations_with(10'000'000, 40'000'000);
  const std::vector<Iteration> both = iterations_with(22'000'000, 52'000'000);
  const std::span<const Iteration> ranks[] = {usual, both};
  EXPECT_FALSE(slow_phase(table, ranks, {.rank = 1, .behind_ns = 30e6}));
}

}  // namespace
}  // namespace paceline::analysis
