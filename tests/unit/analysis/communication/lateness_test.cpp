// SPDX-License-Identifier: Apache-2.0
// A slow rank is found, and balanced ranks are named in at most 5 % of runs, whatever the noise.
//
// PACELINE_SIMULATED_RUNS=2000 simulates this number of runs of each kind instead of a few.
#include "analysis/communication/lateness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "analysis/communication/lateness_hosts.h"
#include "analysis/statistics/block_contrasts.h"
#include "tests/unit/analysis/simulated_steps.h"

namespace paceline::analysis {
namespace {

using simulation::Job;
using simulation::Noise;
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

// A permutation of the ranks names the noisy rank in 30 of 200 such runs.
TEST(Lateness, NoisierRanksAreNotNamedAsSlowBeyondFivePercent) {
  const std::size_t runs = simulated_runs(100);
  for (const std::size_t ranks : {4U, 16U}) {
    const Outcome outcome = outcome_of({.ranks = ranks, .iterations = 200, .noise_of_first = 5}, runs);
    EXPECT_LE(static_cast<double>(outcome.named), most_false(runs));
    EXPECT_EQ(outcome.judged, runs);
  }
}

TEST(Lateness, ASlowRankIsFoundBesideANoisyOne) {
  const std::size_t runs = simulated_runs(20);
  const Outcome outcome = outcome_of({.ranks = 8, .iterations = 200, .noise_of_first = 5, .delay = 0.03}, runs);
  EXPECT_GE(outcome.right, outcome.judged * 9 / 10);
}

TEST(Lateness, ANoisyRankIsIrregularAndAlikeRanksAreNot) {
  const std::size_t runs = simulated_runs(40);
  Random random(7);
  std::size_t noisy = 0, alike = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    const LatenessTable table = simulate({.ranks = 8, .iterations = 300, .noise_of_first = 5}, random);
    const LatenessTest test = test_irregularity(table, test_lateness(table, 0));
    noisy += test.late.size() == 1 && test.late[0].rank == 0 && test.late[0].share_of_step > 0.03;
    const LatenessTable balanced = simulate({.ranks = 8, .iterations = 300}, random);
    alike += !test_irregularity(balanced, test_lateness(balanced, 0)).late.empty();
  }
  EXPECT_GE(noisy, runs * 85 / 100);  // in one run of 20 it is late by chance as well, and then nothing is said
  EXPECT_LE(static_cast<double>(alike), most_false(runs));
}

// Rank 2 is early and late in turns.
TEST(Lateness, TheCostOfAnIrregularRankIsWhatTheLastArrivalWouldGain) {
  Random random(7);
  LatenessTable table;
  for (int i = 0; i < 200; ++i) {
    LatenessRow row;
    std::vector<double> arrivals = {1e6 * random.uniform(), 1e6 * random.uniform(), 1e6 * random.uniform()};
    const double sign = i % 2 == 0 ? 1 : -1;
    arrivals[2] = 0.5e6 + sign * 2e7 * (0.5 + random.uniform());
    row.step_ns = 1e8;
    add_collective(row, arrivals, std::vector<double>(3, 0));
    add_iteration(table, i, row);
  }
  const LatenessTest test = test_irregularity(table, test_lateness(table, 0));
  ASSERT_EQ(test.late.size(), 1U);
  EXPECT_EQ(test.late[0].rank, 2U);
  EXPECT_NEAR(test.late[0].behind_ns, 1e7, 1e6);  // every second time 2e7 on average
  EXPECT_NEAR(test.late[0].share_of_step, 0.1, 0.01);
}

TEST(Lateness, ARankThatBecomesSlowDuringTheRunIsNamed) {
  Random random(7);
  const LatenessTest test = test_lateness(simulate({.delay = 0.3, .delayed_from = 240}, random), 0);
  ASSERT_EQ(test.late.size(), 1U);
  EXPECT_EQ(test.late[0].rank, 1U);
  EXPECT_LT(test.autocorrelation_time, 2);
}

// Late by six standard errors of the mean of exponential noise with φ = 0.9, where the mean alone finds 96 of 100.
TEST(Lateness, ManyRanksWithSkewedNoiseHideNoSlowOne) {
  const std::size_t runs = simulated_runs(10);
  const Outcome outcome =
      outcome_of({.ranks = 32, .iterations = 500, .exponential = true, .autocorrelation = 0.9, .delay = 0.063}, runs);
  EXPECT_GE(outcome.right, outcome.judged * 9 / 10);
}

// The mean finds it. Its places hardly differ from those of other ranks.
TEST(Lateness, ARankThatIsVeryLateInFewIterationsIsNamed) {
  Random random(7);
  LatenessTable table = simulate({.iterations = 400, .noise = 0.01}, random);
  for (std::size_t i = 9; i < table.iterations(); i += 20) {
    for (auto* values : {&table.late_ns, &table.behind_ns, &table.others_wait_ns}) (*values)[i * 4 + 1] += 1e8;
  }
  const LatenessTest test = test_lateness(table, 0);
  ASSERT_EQ(test.late.size(), 1U);
  EXPECT_EQ(test.late[0].rank, 1U);
}

TEST(Lateness, TwoSlowRanksDoNotHideEachOther) {
  Random random(7);
  const LatenessTest test =
      test_lateness(simulate({.ranks = 6, .iterations = 60, .slow_ranks = 2, .delay = 0.1}, random), 0);
  ASSERT_EQ(test.late.size(), 2U);
  EXPECT_EQ(test.late[0].rank + test.late[1].rank, 3U);
}

// Neighbouring iterations are alike there, longer stretches are not. Each rank has a wave of its own.
TEST(Lateness, WavesOfAFewIterationsHideNoSlowRank) {
  constexpr std::size_t ranks = 64, iterations = 45, runs = 40;
  Random random(3);
  std::size_t found = 0;
  for (std::size_t run = 0; run < runs; ++run) {
    std::vector<double> periods(ranks), phases(ranks), arrivals(ranks), waits(ranks);
    for (std::size_t r = 0; r < ranks; ++r) periods[r] = 4 + 4 * random.uniform(), phases[r] = random.uniform();
    LatenessTable table;
    for (std::size_t i = 0; i < iterations; ++i) {
      for (std::size_t r = 0; r < ranks; ++r) {
        const double wave = std::sin(2 * M_PI * (static_cast<double>(i) / periods[r] + phases[r]));
        arrivals[r] = simulation::work_ns * (1 + 0.2 * (wave + std::sqrt(0.5) * random.normal()) + (r == 1 ? 0.17 : 0));
      }
      LatenessRow row;
      row.step_ns = *std::max_element(arrivals.begin(), arrivals.end());
      for (std::size_t r = 0; r < ranks; ++r) waits[r] = row.step_ns - arrivals[r];
      add_collective(row, arrivals, waits);
      add_iteration(table, static_cast<std::int64_t>(i), row);
    }
    const LatenessTest test = test_lateness(table, 0);
    found += test.late.size() == 1 && test.late.front().rank == 1;
  }
  EXPECT_GE(found, runs * 95 / 100);
}

TEST(LatenessOfHosts, NamesAHostWhoseRanksAreAllLate) {
  const std::vector<std::uint32_t> host_of_rank = {0, 0, 1, 1, 2, 2};
  Random random(7);
  const Job job{.ranks = 6, .iterations = 200, .slow_rank = 2, .slow_ranks = 2, .delay = 0.1};
  const LatenessTest test = test_lateness(lateness_of_hosts(simulate(job, random), host_of_rank), 0);
  ASSERT_EQ(test.late.size(), 1U);
  EXPECT_EQ(test.late[0].rank, 1U);
  EXPECT_NEAR(test.late[0].behind_ns, 1e7, 1e6);
  EXPECT_GT(test.late[0].share_of_step, 0.05);
}

TEST(LatenessOfHosts, OneSlowRankDoesNotMakeItsHostLate) {
  Random random(7);
  const LatenessTable ranks = simulate({.ranks = 6, .iterations = 200, .noise = 0.01, .delay = 0.1}, random);
  EXPECT_EQ(test_lateness(ranks, 0).late.size(), 1U);
  const LatenessTest test = test_lateness(lateness_of_hosts(ranks, std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}), 0);
  EXPECT_TRUE(test.judged);
  EXPECT_TRUE(test.late.empty());
}

TEST(LatenessOfHosts, HostsWithOneRankOrDifferentNumbersOfRanksAreNotCompared) {
  Random random(7);
  const LatenessTable ranks = simulate({.ranks = 4}, random);
  for (const auto& hosts : {std::vector<std::uint32_t>{0, 1, 2, 3}, {0, 0, 0, 1}, {0, 0, 0, 0}, {0, 0}, {}}) {
    EXPECT_EQ(lateness_of_hosts(ranks, hosts).iterations(), 0U);
  }
}

// By hand: two hosts of two ranks arrive at 0 and 10, and at 30 and 40. The lower ones are 0 and 30. Rank 3 waits for
// nobody, the others 40, 30 and 10: on average 35 on the first host, and 5 on the second.
TEST(LatenessOfHosts, TakesTheWaitsOfTheOtherHosts) {
  LatenessRow row;
  add_collective(row, std::vector<double>{0, 10, 30, 40}, std::vector<double>{40, 30, 10, 0});
  row.step_ns = 100;
  LatenessTable ranks;
  add_iteration(ranks, 7, row);
  const LatenessTable hosts = lateness_of_hosts(ranks, std::vector<std::uint32_t>{0, 0, 1, 1});
  EXPECT_EQ(hosts.numbers, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(hosts.late_ns, (std::vector<double>{-15, 15}));
  EXPECT_EQ(hosts.behind_ns, (std::vector<double>{-30, 30}));
  ASSERT_EQ(hosts.others_wait_ns.size(), 2U);
  EXPECT_DOUBLE_EQ(hosts.others_wait_ns[0], 5);
  EXPECT_DOUBLE_EQ(hosts.others_wait_ns[1], 35);
}

TEST(Lateness, DoesNotJudgeARunOfFewerThanTwentyAutocorrelationTimes) {
  Random random(7);
  EXPECT_FALSE(test_lateness(simulate({.iterations = 21, .delay = 0.5}, random), 0).judged);
  EXPECT_FALSE(test_lateness(simulate({.iterations = 60, .autocorrelation = 0.99, .delay = 0.5}, random), 0).judged);
  EXPECT_TRUE(test_lateness(simulate({.iterations = 100, .delay = 0.5}, random), 0).judged);
}

// Some 6 autocorrelation times, of which the run is one observation: p = 0.025 for one of two ranks at 2.7 standard
// deviations of their difference. The delays are 14 and 4.2 of them, and none.
TEST(Lateness, NamesARankOfAShortRunThatStandsOutFromAllNoise) {
  for (const double delay : {0.2, 0.06, 0.0}) {
    int named = 0, short_runs = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      Random random(seed);
      const LatenessTest test = test_lateness(
          simulate({.ranks = 2, .iterations = 120, .noise = 0.01, .autocorrelation = 0.9, .delay = delay}, random), 0);
      if (test.judged) continue;
      ++short_runs;
      ASSERT_LE(test.late.size(), 1U);
      if (test.late.empty()) continue;
      ++named;
      EXPECT_TRUE(delay == 0 || test.late[0].rank == 1);
      EXPECT_LE(test.late[0].p, 0.05);
    }
    EXPECT_GE(short_runs, 80);
    EXPECT_GE(named, delay > 0 ? short_runs * 19 / 20 : 0);
    EXPECT_LE(named, delay > 0 ? short_runs : short_runs / 20);
  }
}

// Fewer than 20 iterations do not show how long noise lasts: Cantelli's bound for one of two ranks is 0.025 at 6.2
// standard deviations. The delays are 14 and 2.8 of them.
TEST(Lateness, NamesARankOfAFewIterationsThatStandsOutFromAnyNoise) {
  for (const double delay : {0.2, 0.04}) {
    int named = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      const LatenessTest test =
          test_lateness(simulate({.ranks = 2, .iterations = 20, .noise = 0.01, .delay = delay}, random), 0);
      EXPECT_FALSE(test.judged);
      named += test.late.size() == 1 && test.late[0].rank == 1 ? 1 : 0;
    }
    EXPECT_EQ(named, delay > 0.1 ? 20 : 0);
  }
}

// A fifth of the variance lasts for 22 of 450 iterations, which their correlation with the next one hardly shows.
TEST(Lateness, NoiseThatLastsIsSeenBesideNoiseOfSingleIterations) {
  constexpr std::size_t ranks = 16, iterations = 450;
  constexpr double time = 0.05 * iterations;
  int accused = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    std::vector<Noise> noises;
    for (std::size_t r = 0; r < ranks; ++r) noises.emplace_back((time - 1) / (time + 1), false, random);
    std::vector<double> values;
    for (std::size_t i = 0; i < iterations * ranks; ++i) {
      values.push_back(std::sqrt(0.2) * noises[i % ranks].next(random) + std::sqrt(0.8) * random.normal());
    }
    const BlockContrasts contrasts = block_contrasts(values, ranks);
    accused += !contrasts.suspects.empty() && contrasts.suspects[0].p <= 0.05 / ranks ? 1 : 0;
  }
  EXPECT_LE(accused, 24);  // 28 % without a look at longer parts
}

// It is late for tens of iterations at a time, by chance.
TEST(Lateness, TheOneRankWhoseNoiseLastsIsNotNamed) {
  constexpr std::size_t ranks = 16, iterations = 45;
  int accused = 0, judged = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Noise lasting(0.9, false, random);
    std::vector<double> values;
    for (std::size_t i = 0; i < iterations * ranks; ++i) {
      values.push_back(i % ranks == 0 ? lasting.next(random) : random.normal());
    }
    const BlockContrasts contrasts = block_contrasts(values, ranks);
    accused += !contrasts.suspects.empty() && contrasts.suspects[0].p <= 0.05 / ranks ? 1 : 0;
    judged += contrasts.judged ? 1 : 0;
  }
  EXPECT_GE(judged, 290);
  EXPECT_LE(accused, most_false(300));  // 18 % if its noise is taken for that of the others
}

// What the ranks' noise has in common makes it better known: a rank five standard errors late is named although
// the run has 15 blocks only.
TEST(Lateness, ManyRanksShowTheirNoiseTogether) {
  constexpr std::size_t ranks = 64, iterations = 45;
  const double late = 5 * std::sqrt(1.0 / iterations * ranks / (ranks - 1));
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<double> values;
    for (std::size_t i = 0; i < iterations * ranks; ++i) {
      values.push_back(random.normal() + (i % ranks == 1 ? late : 0));
    }
    const BlockContrasts contrasts = block_contrasts(values, ranks);
    named +=
        !contrasts.suspects.empty() && contrasts.suspects[0].column == 1 && contrasts.suspects[0].p <= 0.05 / ranks;
  }
  EXPECT_GE(named, 190);  // 177 if each rank shows its noise alone
}

// Some 13 autocorrelation times: too short to call nobody late, not too short to name a rank that all blocks show. The
// delay is 4.2 standard deviations of the difference of two ranks.
TEST(Lateness, NamesARankOfAShortRunThatAllBlocksShow) {
  for (const double delay : {0.06, 0.0}) {
    int named = 0, another = 0, short_runs = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      Random random(seed);
      const LatenessTest test = test_lateness(
          simulate({.ranks = 2, .iterations = 270, .noise = 0.01, .autocorrelation = 0.9, .delay = delay}, random), 0);
      if (test.judged) continue;
      ++short_runs;
      if (test.late.empty()) continue;
      (delay > 0 && test.late[0].rank == 1 ? named : another) += 1;
    }
    EXPECT_GE(short_runs, 150);
    EXPECT_GE(named, delay > 0 ? short_runs * 4 / 5 : 0) << short_runs;
    EXPECT_LE(another, short_runs / 20);
  }
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

// Rank 1 leaves each allreduce 10 ms later than rank 0, whose link is faster. It therefore arrives later at the next
// one, as it would if it worked longer, which it does by `longer_ns` after the allreduce.
LatenessTable ranks_that_leave_apart(std::int64_t longer_ns) {
  constexpr std::int64_t ms = 1'000'000, count = 40;
  Collectives collectives;
  collectives.blocked.resize(2);
  std::vector<Iteration> iterations[2];
  std::int64_t left_ns[2] = {0, 10 * ms};
  for (std::uint32_t i = 0; i < count; ++i) {
    Collective& one = collectives.matched.emplace_back();
    for (std::uint32_t r = 0; r < 2; ++r) {
      const std::int64_t optimizer_ns = 5 * ms + (r == 1 ? longer_ns : 0), noise_ns = (i * 7 + r * 3) % 5 * 1000;
      const std::int64_t begin_ns = left_ns[r] + optimizer_ns, arrival_ns = begin_ns + 20 * ms + noise_ns;
      if (i > 0) iterations[r].back().duration_ns = begin_ns - iterations[r].back().start_ns;
      iterations[r].push_back({.number = i, .start_ns = begin_ns, .duration_ns = 100 * ms});
      one.calls.push_back({.rank = r, .call = i, .start_ns = arrival_ns, .blocked_from_ns = arrival_ns});
      one.last_start_ns = std::max(one.last_start_ns, arrival_ns);
    }
    for (std::uint32_t r = 0; r < 2; ++r) {
      left_ns[r] = one.calls[r].end_ns = one.last_start_ns + (r == 1 ? 15 : 5) * ms;
      collectives.blocked[r].push_back({one.calls[r].start_ns, left_ns[r], one.last_start_ns, i});
    }
  }
  const std::span<const Iteration> of_ranks[] = {iterations[0], iterations[1]};
  return lateness_of(collectives, of_ranks);
}

TEST(Lateness, ARankThatOnlyLeavesLaterIsNotLate) {
  constexpr double ms = 1e6;
  const LatenessTable even = ranks_that_leave_apart(0);
  ASSERT_EQ(even.iterations(), 36U);
  for (std::size_t i = 0; i < even.iterations(); ++i) EXPECT_NEAR(even.behind_ns[2 * i + 1], 0, 0.01 * ms);
  EXPECT_TRUE(test_lateness(even, 0).late.empty());
  const LatenessTable longer = ranks_that_leave_apart(3'000'000);
  for (std::size_t i = 0; i < longer.iterations(); ++i) EXPECT_NEAR(longer.behind_ns[2 * i + 1], 3 * ms, 0.01 * ms);
  ASSERT_EQ(test_lateness(longer, 0).late.size(), 1U);
  EXPECT_EQ(test_lateness(longer, 0).late.front().rank, 1U);
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
