// A slow rank is found, and balanced ranks are named in at most 5 % of runs, whatever the noise.
//
// PACELINE_SIMULATED_RUNS=2000 simulates this number of runs of each kind instead of a few.
#include "analysis/metrics/lateness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "tests/unit/analysis/simulated_steps.h"

namespace paceline::analysis {
namespace {

using simulation::Job;
using simulation::Random;
using simulation::simulate;

std::size_t simulated_runs(std::size_t usual) {
  const char* asked = std::getenv("PACELINE_SIMULATED_RUNS");
  return asked != nullptr ? static_cast<std::size_t>(std::strtoul(asked, nullptr, 10)) : usual;
}

struct Outcome {
  std::size_t runs = 0, judged = 0, named = 0, right = 0;
};

Outcome outcome_of(const Job& job, std::size_t runs) {
  Random random(7);
  Outcome outcome;
  for (; outcome.runs < runs; ++outcome.runs) {
    const LatenessTest test = test_lateness(simulate(job, random), 0);
    outcome.judged += test.judged;
    outcome.named += !test.late.empty();
    outcome.right += test.late.size() == 1 && test.late.front().rank == 1;
  }
  std::cout << job.ranks << " ranks, " << job.iterations << " iterations, " << job.collectives << " collectives, AR(1) "
            << job.autocorrelation << ", slower by " << job.delay << ": " << outcome.judged << " of " << outcome.runs
            << " judged, " << outcome.named << " named\n";
  return outcome;
}

// 5 % and three standard errors of what is seen in so many runs.
double most_false(std::size_t runs) {
  const auto n = static_cast<double>(runs);
  return 0.05 * n + 3 * std::sqrt(0.05 * 0.95 * n);
}

TEST(Lateness, NamesNobodyInBalancedRunsBeyondFivePercent) {
  const std::size_t runs = simulated_runs(40);
  for (const std::size_t ranks : {2U, 8U}) {
    for (const std::size_t collectives : {1U, 10U}) {
      for (const double autocorrelation : {0.0, 0.9}) {
        const Job job{.ranks = ranks,
                      .iterations = autocorrelation > 0 ? 800U : 100U,
                      .collectives = collectives,
                      .exponential = ranks == 8,
                      .autocorrelation = autocorrelation};
        const Outcome outcome = outcome_of(job, runs);
        EXPECT_LE(static_cast<double>(outcome.named), most_false(runs));
        EXPECT_GE(outcome.judged, runs / 2);
      }
    }
  }
}

// Six standard errors of the mean lateness, as tests/bench/stragglers.cpp measured them.
TEST(Lateness, FindsASlowRankAndNoOther) {
  const std::size_t runs = simulated_runs(20);
  for (const std::size_t ranks : {2U, 8U}) {
    for (const double autocorrelation : {0.0, 0.9}) {
      const Job job{.ranks = ranks,
                    .iterations = autocorrelation > 0 ? 1200U : 200U,
                    .autocorrelation = autocorrelation,
                    .delay = autocorrelation > 0 ? 0.05 : 0.03};
      const Outcome outcome = outcome_of(job, runs);
      EXPECT_GE(outcome.judged, runs * 9 / 10);
      EXPECT_GE(outcome.right, outcome.judged * 9 / 10);
    }
  }
}

TEST(Lateness, ARankThatBecomesSlowDuringTheRunIsNamed) {
  Random random(7);
  const LatenessTest test = test_lateness(simulate({.delay = 0.3, .delayed_from = 240}, random), 0);
  ASSERT_EQ(test.late.size(), 1U);
  EXPECT_EQ(test.late[0].rank, 1U);
  EXPECT_LT(test.autocorrelation_time, 2);
}

TEST(Lateness, DoesNotJudgeARunOfFewerThanTwentyAutocorrelationTimes) {
  Random random(7);
  EXPECT_FALSE(test_lateness(simulate({.iterations = 21, .delay = 0.5}, random), 0).judged);
  EXPECT_FALSE(test_lateness(simulate({.iterations = 60, .autocorrelation = 0.99, .delay = 0.5}, random), 0).judged);
  EXPECT_TRUE(test_lateness(simulate({.iterations = 100, .delay = 0.5}, random), 0).judged);
}

TEST(Lateness, NamesNobodyForLessThanOnePercentOfAStepOrThanTheClocksError) {
  Random random(7);
  EXPECT_TRUE(test_lateness(simulate({.noise = 0.0001, .delay = 0.005}, random), 0).late.empty());
  const LatenessTable table = simulate({.noise = 0.001, .delay = 0.02}, random);
  EXPECT_EQ(test_lateness(table, 0).late.size(), 1U);
  EXPECT_TRUE(test_lateness(table, 3e6).late.empty());
}

// By hand: arrivals at 0, 10 and 40 have the median 10, and each rank's others the medians 25, 20 and 5.
TEST(Lateness, AddsUpWhatEachCollectiveShows) {
  LatenessRow row;
  add_collective(row, std::vector<double>{0, 10, 40}, std::vector<double>{40, 30, 0});
  EXPECT_EQ(row.late_ns, (std::vector<double>{-10, 0, 30}));
  EXPECT_EQ(row.behind_ns, (std::vector<double>{-25, -10, 35}));
  EXPECT_EQ(row.others_wait_ns, (std::vector<double>{15, 20, 35}));
  add_collective(row, std::vector<double>{0, 10, 40}, std::vector<double>{40, 30, 0});
  EXPECT_EQ(row.late_ns, (std::vector<double>{-20, 0, 60}));
  EXPECT_EQ(row.collectives, 2U);
  LatenessRow even;
  add_collective(even, std::vector<double>{0, 10, 40, 20}, std::vector<double>{40, 30, 0, 20});
  EXPECT_EQ(even.late_ns, (std::vector<double>{-15, -5, 25, 5}));
  EXPECT_EQ(even.behind_ns, (std::vector<double>{-20, -10, 30, 10}));
}

TEST(Lateness, ATableHasTheMeanNumberOfCollectives) {
  LatenessTable table;
  for (const int collectives : {2, 4, 3, 7}) {
    LatenessRow row;
    for (int i = 0; i < collectives; ++i) add_collective(row, std::vector<double>{0, 10}, std::vector<double>{10, 0});
    add_iteration(table, 0, row);
  }
  EXPECT_EQ(table.iterations(), 4U);
  EXPECT_DOUBLE_EQ(table.collectives, 4);
}

}  // namespace
}  // namespace paceline::analysis
