// SPDX-License-Identifier: Apache-2.0
// A jump and a drift are found, and unchanging series are called changed in at most 5 % of runs, whatever the noise.
//
// PACELINE_SIMULATED_RUNS=1000 simulates this number of runs of each kind instead of a few.
#include "analysis/statistics/step_changes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include "tests/unit/analysis/simulated_steps.h"

namespace paceline::analysis {
namespace step_change_simulation {
namespace {

using simulation::Job;
using simulation::Random;

std::size_t simulated_runs(std::size_t usual) {
  const char* asked = std::getenv("PACELINE_SIMULATED_RUNS");
  return asked != nullptr ? static_cast<std::size_t>(std::strtoul(asked, nullptr, 10)) : usual;
}

struct Outcome {
  std::size_t judged = 0, jumps = 0, drifts = 0, unclear = 0;
  std::size_t named() const { return jumps + drifts + unclear; }
};

// Steps of 1 s with noise of 5 %. A jump comes after two fifths of the iterations; a drift is that of the whole run.
Outcome outcome_of(const Job& job, double jump, double drift, std::size_t runs) {
  Random random(5);
  Outcome outcome;
  for (std::size_t i = 0; i < runs; ++i) {
    const StepChangeTest test = test_step_change(simulate_steps(job, jump, drift, random), 0.02);
    outcome.judged += test.judged;
    if (!test.change) continue;
    outcome.jumps += test.change->kind == StepChange::Kind::jump;
    outcome.drifts += test.change->kind == StepChange::Kind::drift;
    outcome.unclear += test.change->kind == StepChange::Kind::unclear;
  }
  std::cout << job.iterations << " iterations, AR(1) " << job.autocorrelation
            << (job.exponential ? ", exponential" : ", normal") << ", jump " << jump << ", drift " << drift << ": "
            << outcome.judged << " of " << runs << " judged, " << outcome.jumps << " jumps, " << outcome.drifts
            << " drifts, " << outcome.unclear << " unclear\n";
  return outcome;
}

TEST(StepChanges, AreNamedInAtMostFivePercentOfUnchangingRuns) {
  const std::size_t runs = simulated_runs(40);
  const auto n = static_cast<double>(runs);
  const double most = 0.05 * n + 3 * std::sqrt(0.05 * 0.95 * n);
  for (const double autocorrelation : {0.0, 0.5, 0.9}) {
    for (const std::size_t iterations : {20U, 50U, 100U, 200U, 500U}) {
      for (const bool exponential : {false, true}) {
        const Outcome outcome = outcome_of(
            {.iterations = iterations, .exponential = exponential, .autocorrelation = autocorrelation}, 0, 0, runs);
        EXPECT_LE(static_cast<double>(outcome.named()), most);
      }
    }
  }
}

TEST(StepChanges, AJumpAndADriftOfTwiceTheNoiseAreFoundAndToldApart) {
  const std::size_t runs = simulated_runs(40);
  for (const bool exponential : {false, true}) {
    const Outcome jump = outcome_of({.iterations = 200, .exponential = exponential}, 0.1, 0, runs);
    EXPECT_GE(static_cast<double>(jump.jumps), 0.97 * static_cast<double>(runs));
    const Outcome drift = outcome_of({.iterations = 500, .exponential = exponential}, 0, 0.1, runs);
    EXPECT_GE(static_cast<double>(drift.drifts), 0.97 * static_cast<double>(runs));
  }
  const Outcome alike = outcome_of({.iterations = 1000, .autocorrelation = 0.5}, 0.1, 0, runs);
  EXPECT_GE(static_cast<double>(alike.jumps), 0.97 * static_cast<double>(runs));
}

TEST(StepChanges, TheJumpIsWhereItIsAndAsLargeAsItIs) {
  Random random(3);
  const std::vector<double> steps = simulate_steps({.iterations = 100}, 1.4, 0, random);
  const StepChangeTest test = test_step_change(steps, 0.02);
  ASSERT_TRUE(test.change);
  EXPECT_EQ(test.change->kind, StepChange::Kind::jump);
  EXPECT_EQ(test.change->at, 40U);
  EXPECT_NEAR(test.change->before, 1, 0.03);
  EXPECT_NEAR(test.change->after, 2.4, 0.03);
  EXPECT_LE(test.change->p, 0.001);
}

TEST(StepChanges, ASmallChangeDoesNotCountAndAShortRunIsNotJudged) {
  std::mt19937_64 random(3);
  std::vector<double> steps;
  for (int i = 0; i < 200; ++i)
    steps.push_back(1 + 1e-4 * std::normal_distribution<double>()(random) + (i < 80 ? 0 : 0.01));
  EXPECT_TRUE(test_step_change(steps, 0.005).change);
  EXPECT_FALSE(test_step_change(steps, 0.02).change);
  EXPECT_FALSE(test_step_change(std::vector<double>(29, 1.0), 0).judged);
  EXPECT_FALSE(test_step_change({}, 0).judged);
  const StepChangeTest constant = test_step_change(std::vector<double>(100, 1.0), 0);
  EXPECT_TRUE(constant.judged);
  EXPECT_FALSE(constant.change);
}

// Six standard errors of the mean of exponential noise.
TEST(StepChanges, SkewedNoiseHidesNoJump) {
  const std::size_t runs = simulated_runs(20);
  const Outcome jump = outcome_of({.iterations = 200, .exponential = true, .autocorrelation = 0.5}, 0.075, 0, runs);
  EXPECT_GE(jump.named(), jump.judged * 9 / 10);
}

// At six standard errors a jump and a drift are often alike. Then the report claims neither.
TEST(StepChanges, TheWrongKindIsSeldomClaimed) {
  const std::size_t runs = simulated_runs(40);
  const auto n = static_cast<double>(runs);
  const double most = 0.05 * n + 3 * std::sqrt(0.05 * 0.95 * n);
  const Outcome jump = outcome_of({.iterations = 200}, 0.0433, 0, runs);
  const Outcome drift = outcome_of({.iterations = 200}, 0, 0.0735, runs);
  EXPECT_LE(static_cast<double>(jump.drifts), most);
  EXPECT_LE(static_cast<double>(drift.jumps), most);
  EXPECT_GT(jump.unclear + drift.unclear, 0U);
  EXPECT_GE(static_cast<double>(jump.named() + drift.named()), 1.9 * n);
}

// Timers of a coarse clock give many equal values.
TEST(StepChanges, EqualStepTimesInAnyOrderAreNoChange) {
  std::mt19937_64 random(3);
  std::vector<double> steps;
  for (int i = 0; i < 300; ++i) steps.push_back(random() % 8 == 0 ? 1.1 : 1.0);
  EXPECT_TRUE(test_step_change(steps, 0).judged);
  EXPECT_FALSE(test_step_change(steps, 0).change);
}

TEST(StepChanges, OneSlowIterationIsNoChange) {
  std::vector<double> steps(200, 1.0);
  std::mt19937_64 random(9);
  for (double& step : steps) step += 0.01 * std::normal_distribution<double>()(random);
  steps[150] = 30;
  EXPECT_FALSE(test_step_change(steps, 0.02).change);
}

}  // namespace
}  // namespace step_change_simulation
}  // namespace paceline::analysis
