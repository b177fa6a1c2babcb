// A jump and a drift are found, and unchanging series are called changed in at most 5 % of runs, whatever the noise.
//
// PACELINE_SIMULATED_RUNS=1000 simulates this number of runs of each kind instead of a few.
#include "analysis/metrics/step_changes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

namespace paceline::analysis {
namespace step_change_simulation {
namespace {

struct SimulatedSteps {
  std::size_t iterations = 200;
  double autocorrelation = 0;  // of an AR(1) process
  bool exponential = false;    // else normal
  double jump = 0;             // after two fifths of the iterations
  double drift = 0;            // over the whole run
};

// Steps of 1 s with noise of 5 %.
std::vector<double> simulate(const SimulatedSteps& run, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  double state = normal(random);
  std::vector<double> steps;
  for (std::size_t i = 0; i < run.iterations; ++i) {
    state = run.autocorrelation * state + std::sqrt(1 - run.autocorrelation * run.autocorrelation) * normal(random);
    const double noise = run.exponential ? -std::log(0.5 * std::erfc(state / std::sqrt(2.0)) + 1e-300) - 1 : state;
    const double progress = static_cast<double>(i) / static_cast<double>(run.iterations);
    steps.push_back(1 + 0.05 * noise + (progress >= 0.4 ? run.jump : 0) + run.drift * progress);
  }
  return steps;
}

std::size_t simulated_runs(std::size_t usual) {
  const char* asked = std::getenv("PACELINE_SIMULATED_RUNS");
  return asked != nullptr ? static_cast<std::size_t>(std::strtoul(asked, nullptr, 10)) : usual;
}

struct Outcome {
  std::size_t judged = 0, jumps = 0, drifts = 0;
  std::size_t named() const { return jumps + drifts; }
};

Outcome outcome_of(const SimulatedSteps& run, std::size_t runs) {
  std::mt19937_64 random(5);
  Outcome outcome;
  for (std::size_t i = 0; i < runs; ++i) {
    const StepChangeTest test = test_step_change(simulate(run, random), 0.02);
    outcome.judged += test.judged;
    if (test.change) ++(test.change->jump ? outcome.jumps : outcome.drifts);
  }
  std::cout << run.iterations << " iterations, AR(1) " << run.autocorrelation
            << (run.exponential ? ", exponential" : ", normal") << ", jump " << run.jump << ", drift " << run.drift
            << ": " << outcome.judged << " of " << runs << " judged, " << outcome.jumps << " jumps, " << outcome.drifts
            << " drifts\n";
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
            {.iterations = iterations, .autocorrelation = autocorrelation, .exponential = exponential}, runs);
        EXPECT_LE(static_cast<double>(outcome.named()), most);
      }
    }
  }
}

TEST(StepChanges, AJumpAndADriftOfTwiceTheNoiseAreFoundAndToldApart) {
  const std::size_t runs = simulated_runs(40);
  for (const bool exponential : {false, true}) {
    const Outcome jump = outcome_of({.iterations = 200, .exponential = exponential, .jump = 0.1}, runs);
    EXPECT_GE(static_cast<double>(jump.jumps), 0.97 * static_cast<double>(runs));
    const Outcome drift = outcome_of({.iterations = 500, .exponential = exponential, .drift = 0.1}, runs);
    EXPECT_GE(static_cast<double>(drift.drifts), 0.97 * static_cast<double>(runs));
  }
  const Outcome alike = outcome_of({.iterations = 1000, .autocorrelation = 0.5, .jump = 0.1}, runs);
  EXPECT_GE(static_cast<double>(alike.jumps), 0.97 * static_cast<double>(runs));
}

TEST(StepChanges, TheJumpIsWhereItIsAndAsLargeAsItIs) {
  std::mt19937_64 random(3);
  const std::vector<double> steps = simulate({.iterations = 100, .jump = 1.4}, random);
  const StepChangeTest test = test_step_change(steps, 0.02);
  ASSERT_TRUE(test.change);
  EXPECT_TRUE(test.change->jump);
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
  EXPECT_FALSE(test_step_change(std::vector<double>(9, 1.0), 0).judged);
  EXPECT_FALSE(test_step_change({}, 0).judged);
  const StepChangeTest constant = test_step_change(std::vector<double>(100, 1.0), 0);
  EXPECT_TRUE(constant.judged);
  EXPECT_FALSE(constant.change);
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
