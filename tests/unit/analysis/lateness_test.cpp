// A slow rank is found, and balanced ranks are named in at most 5 % of runs, whatever the noise.
//
// PACELINE_SIMULATED_RUNS=2000 simulates so many runs of each kind instead of a few.
#include "analysis/metrics/lateness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>

namespace paceline::analysis {
namespace {

struct Simulated {
  std::size_t ranks = 4, iterations = 400;
  double noise = 0.05;         // standard deviation of a rank's work, of its mean
  double autocorrelation = 0;  // of an AR(1) process
  double slower = 0;           // rank 1's work, relative
};

// Work of 100 ms in each iteration, then one collective.
LatenessTable simulate(const Simulated& run, std::mt19937_64& random) {
  constexpr double work_ns = 1e8;
  std::normal_distribution<double> normal;
  LatenessTable table;
  table.ranks = run.ranks;
  table.collectives = 1;
  std::vector<double> state(run.ranks);
  for (double& value : state) value = normal(random);
  const double fresh = std::sqrt(1 - run.autocorrelation * run.autocorrelation);
  for (std::size_t i = 0; i < run.iterations; ++i) {
    std::vector<double> arrivals;
    for (std::size_t r = 0; r < run.ranks; ++r) {
      state[r] = run.autocorrelation * state[r] + fresh * normal(random);
      arrivals.push_back(work_ns * (1 + run.noise * state[r] + (r == 1 ? run.slower : 0)));
    }
    const auto median = [](std::vector<double> values) {
      std::ranges::sort(values);
      return 0.5 * (values[(values.size() - 1) / 2] + values[values.size() / 2]);
    };
    const double last = *std::ranges::max_element(arrivals);
    for (std::size_t r = 0; r < run.ranks; ++r) {
      std::vector<double> others = arrivals;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(r));
      table.late_ns.push_back(arrivals[r] - median(arrivals));
      table.behind_ns.push_back(arrivals[r] - median(others));
      double waited = 0;
      for (const double arrival : others) waited += (last - arrival) / static_cast<double>(others.size());
      table.others_wait_ns.push_back(waited);
    }
    table.step_ns.push_back(last);
  }
  return table;
}

std::size_t simulated_runs(std::size_t usual) {
  const char* asked = std::getenv("PACELINE_SIMULATED_RUNS");
  return asked != nullptr ? static_cast<std::size_t>(std::strtoul(asked, nullptr, 10)) : usual;
}

struct Outcome {
  std::size_t runs = 0, judged = 0, named = 0, right = 0;
};

Outcome outcome_of(const Simulated& run, std::size_t runs) {
  std::mt19937_64 random(7);
  Outcome outcome;
  for (; outcome.runs < runs; ++outcome.runs) {
    const LatenessTest test = test_lateness(simulate(run, random), 0);
    outcome.judged += test.judged;
    outcome.named += !test.late.empty();
    outcome.right += test.late.size() == 1 && test.late.front().rank == 1;
  }
  std::cout << run.ranks << " ranks, " << run.iterations << " iterations, AR(1) " << run.autocorrelation
            << ", slower by " << run.slower << ": " << outcome.judged << " of " << outcome.runs << " judged, "
            << outcome.named << " named\n";
  return outcome;
}

// 5 % and three standard errors of what is seen in so many runs.
double most_false(std::size_t runs) {
  const auto n = static_cast<double>(runs);
  return 0.05 * n + 3 * std::sqrt(0.05 * 0.95 * n);
}

TEST(Lateness, NamesNobodyInBalancedRunsBeyondFivePercent) {
  const std::size_t runs = simulated_runs(12);
  for (const std::size_t ranks : {2U, 8U}) {
    for (const double autocorrelation : {0.0, 0.9}) {
      const Simulated run{.ranks = ranks,
                          .iterations = autocorrelation > 0 ? 800U : 100U,
                          .noise = 0.2,
                          .autocorrelation = autocorrelation};
      const Outcome outcome = outcome_of(run, runs);
      EXPECT_LE(static_cast<double>(outcome.named), most_false(runs));
      EXPECT_GE(outcome.judged, runs / 2);
    }
  }
}

TEST(Lateness, FindsARankThatIsSlowerByThreePercent) {
  const std::size_t runs = simulated_runs(5);
  for (const std::size_t ranks : {2U, 8U}) {
    for (const double autocorrelation : {0.0, 0.9}) {
      const Simulated run{.ranks = ranks,
                          .iterations = autocorrelation > 0 ? 1200U : 200U,
                          .noise = 0.02,
                          .autocorrelation = autocorrelation,
                          .slower = 0.03};
      EXPECT_GE(outcome_of(run, runs).right, runs * 8 / 10);
    }
  }
}

TEST(Lateness, DoesNotJudgeARunOfFewerThanTwentyAutocorrelationTimes) {
  std::mt19937_64 random(7);
  EXPECT_FALSE(test_lateness(simulate({.iterations = 19, .slower = 0.5}, random), 0).judged);
  EXPECT_FALSE(test_lateness(simulate({.iterations = 60, .autocorrelation = 0.99, .slower = 0.5}, random), 0).judged);
  EXPECT_TRUE(test_lateness(simulate({.iterations = 100, .slower = 0.5}, random), 0).judged);
}

TEST(Lateness, NamesNobodyForLessThanOnePercentOfAStepOrThanTheClocksError) {
  std::mt19937_64 random(7);
  EXPECT_TRUE(test_lateness(simulate({.noise = 0.0001, .slower = 0.005}, random), 0).late.empty());
  const LatenessTable table = simulate({.noise = 0.001, .slower = 0.02}, random);
  EXPECT_EQ(test_lateness(table, 0).late.size(), 1U);
  EXPECT_TRUE(test_lateness(table, 3e6).late.empty());
}

}  // namespace
}  // namespace paceline::analysis
