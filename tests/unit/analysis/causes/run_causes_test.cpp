// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/run_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/cause_text.h"
#include "analysis/run/run_analysis.h"
#include "tests/unit/analysis/buckets_in_flight.h"
#include "tests/unit/analysis/causes/cause_job.h"
#include "tests/unit/analysis/causes/causes_add_up.h"
#include "tests/unit/analysis/causes/milliseconds.h"

namespace paceline::analysis {
namespace {

RunAnalysis analysis_of(const Trace& trace) {
  RunAnalysis run = analyse_run(RunIndex(trace), "run");
  expect_causes_add_up(run);
  return run;
}

RunAnalysis analysis_of(const CauseJob& job) { return analysis_of(trace_of(job)); }

Delay on_rank_1(int rank, Delay delay) { return rank == 1 ? delay : Delay{}; }

TEST(RunCauses, TransferOfAStarvedMemberIsNoCpu) {
  const RunAnalysis run = analysis_of({.delay = [](int rank, int i) {
    return on_rank_1(rank, i >= 20 && i < 26 ? Delay{.held_up_ms = 90} : Delay{});
  }});
  ASSERT_TRUE(run.causes);
  EXPECT_TRUE(run.causes->exact);
  for (const RankCauses& rank : run.causes->ranks) {
    EXPECT_NEAR(rank.transfer[LossCause::no_cpu] / ms, 6 * 90, 1e-3);
    EXPECT_NEAR(rank.transfer[LossCause::moving_bytes] / ms, 40 * 10, 1e-3);
    EXPECT_EQ(rank.own.sum(), 0);
  }
  ASSERT_TRUE(run.causes->slow);
  EXPECT_EQ(run.causes->slow->numbers, (std::vector<std::int64_t>{20, 21, 22, 23, 24, 25}));
  EXPECT_NEAR(run.causes->slow->excess_ns / ms, 6 * 90, 1e-3);
  EXPECT_NEAR(run.causes->slow->parts[LossCause::no_cpu] / ms, 6 * 90, 1e-3);
}

// The others wait for it. Where several ranks make iterations longer in turn, or all of them do, there is no such rank.
TEST(RunCauses, SlowIterationsHaveTheRankThatMadeThemLonger) {
  const auto rank_of = [](std::function<bool(int rank, int i)> is_slow) {
    const RunAnalysis run = analysis_of({.iterations = 60, .delay = [=](int rank, int i) {
                                           return Delay{.sleeps_ms = i % 10 == 9 && is_slow(rank, i) ? 90 : 0};
                                         }});
    EXPECT_TRUE(run.causes->slow);
    return run.causes->slow->rank;
  };
  EXPECT_EQ(rank_of([](int rank, int) { return rank == 1; }), 1);
  EXPECT_EQ(rank_of([](int rank, int i) { return rank == 1 || i < 20; }), 1);
  EXPECT_EQ(rank_of([](int rank, int i) { return rank == i / 10 % 2; }), std::nullopt);
  EXPECT_EQ(rank_of([](int, int) { return true; }), std::nullopt);
}

TEST(RunCauses, WaitingHasTheCauseOfTheLastRank) {
  const auto caused = [](Delay delay) {
    const RunAnalysis run = analysis_of({.delay = [=](int rank, int) { return on_rank_1(rank, delay); }});
    const RankCauses& waits = run.causes->ranks[0];
    EXPECT_NEAR(waits.waiting.sum() / ms, 40 * 30, 1e-3);
    EXPECT_EQ(run.causes->ranks[1].caused.ns, waits.waiting.ns);
    return waits.waiting;
  };
  EXPECT_NEAR(caused({.runs_ms = 30})[LossCause::computing] / ms, 40 * 30, 1e-3);
  EXPECT_NEAR(caused({.waits_ms = 30})[LossCause::no_cpu] / ms, 40 * 30, 1e-3);
  EXPECT_NEAR(caused({.sleeps_ms = 30})[LossCause::blocked] / ms, 40 * 30, 1e-3);
  EXPECT_NEAR(caused({.collects_ms = 30})[LossCause::collecting] / ms, 40 * 30, 1e-3);
  const LossParts mixed = caused({.runs_ms = 10, .sleeps_ms = 20});
  EXPECT_NEAR(mixed[LossCause::computing] / ms, 40 * 10, 1e-3);
  EXPECT_NEAR(mixed[LossCause::blocked] / ms, 40 * 20, 1e-3);
}

// Rank 1 leaves each of 40 transfers 15 ms later, and rank 0 waits for it at the 39 next ones.
TEST(RunCauses, WaitingForARankThatLeftLaterIsTransfer) {
  const RunAnalysis run =
      analysis_of({.delay = [](int rank, int) { return on_rank_1(rank, {.runs_ms = 5, .leaves_later_ms = 15}); }});
  const LossParts& waiting = run.causes->ranks[0].waiting;
  EXPECT_NEAR(waiting[LossCause::moving_bytes] / ms, 39 * 15, 1e-3);
  EXPECT_NEAR(waiting[LossCause::computing] / ms, 40 * 5, 1e-3);
  EXPECT_NEAR(waiting.sum() / ms, 39 * 15 + 40 * 5, 1e-3);
  EXPECT_THAT(main_cause_of_lateness(run.causes->ranks[1]), ::testing::StartsWith(", mostly computing longer"));
}

// Lateness compares times of one clock, and the other rank waits 30 ms by either clock.
TEST(RunCauses, AnInexactClockHidesNoLateRank) {
  Trace trace = trace_of({.iterations = 60, .delay = [](int rank, int i) {
                            return Delay{.runs_ms = (i * 7 + rank * 3) % 3, .sleeps_ms = rank == 1 ? 30 : 0};
                          }});
  trace.ranks[1].clock_error_ns = 1e9;
  const RunAnalysis run = analysis_of(trace);
  EXPECT_EQ(run.clock_error_ns, 1e9);
  ASSERT_EQ(run.lateness.late.size(), 1U);
  EXPECT_EQ(run.lateness.late.front().rank, 1U);
}

TEST(RunCauses, OwnWorkWithoutACpuIsLost) {
  const RunAnalysis run = analysis_of({.delay = [](int, int) { return Delay{.waits_ms = 5}; }});
  for (const RankCauses& rank : run.causes->ranks) EXPECT_NEAR(rank.own[LossCause::no_cpu] / ms, 40 * 5, 1e-3);
}

TEST(RunCauses, StepsThatBecameSlowerHaveACause) {
  const RunAnalysis run =
      analysis_of({.iterations = 80, .delay = [](int, int i) { return Delay{.sleeps_ms = i >= 40 ? 20 : 0}; }});
  ASSERT_TRUE(run.causes->changed);
  EXPECT_EQ(run.causes->changed->numbers.size(), 40u);
  EXPECT_NEAR(run.causes->changed->parts[LossCause::blocked] / ms, 40 * 20, 1);
}

TEST(RunCauses, NothingWithoutStates) { EXPECT_FALSE(analysis_of({.states = false}).causes); }

// Rank 1 sleeps for 30 ms at the end of its iterations, so that its next ones begin later.
// With and without a gap between the iterations.
class DelayAtTheEnd : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(DelayAtTheEnd, OfAnIterationCountsInTheNextOne) {
  const std::int64_t gap = GetParam();
  TraceBuilder run;
  TrackBuilder* mains[] = {&run.add_rank(0, 2).add_main_thread(), &run.add_rank(1, 2).add_main_thread()};
  StateWriter states[] = {StateWriter(0), StateWriter(0)};
  std::int64_t now[] = {0, 0};
  for (int i = 0; i < 40; ++i) {
    const std::int64_t last = std::max(now[0], now[1]) + 40 * ms, end = last + 10 * ms;
    for (std::size_t r = 0; r < 2; ++r) {
      TrackBuilder& main = *mains[r];
      const std::int64_t over = end + (r == 0 ? 10 : 40) * ms;
      main.push(now[r], "iteration", "paceline.trainer", "iteration");
      main.argument("payload", i);
      main.add_slice(now[r] + 40 * ms, end, "MPI_Allreduce", "mpi", "collective");
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", i);
      main.pop(over);
      states[r].runs(end + 10 * ms - now[r]);
      if (r == 1) states[r].sleeps(30 * ms);
      states[r].runs(gap);
      now[r] = over + gap;
    }
  }
  Trace trace = run.finish();
  for (std::size_t r = 0; r < 2; ++r) {
    trace.ranks[r].end_ns = now[r];
    trace.ranks[r].tracks[0].states = states[r].take();
  }
  const RunAnalysis of = analysis_of(trace);
  EXPECT_NEAR(of.causes->ranks[0].waiting.sum() / ms, 39 * 30, 1e-3);
  EXPECT_NEAR(of.causes->ranks[0].waiting[LossCause::blocked] / ms, 39 * 30, 1e-3);
  const auto& place = of.causes->ranks[1].place;
  ASSERT_TRUE(place);
  EXPECT_EQ(place->range, "MPI_Allreduce") << "not the iteration, which would say nothing";
  EXPECT_TRUE(place->after);
  EXPECT_EQ(place->cause, LossCause::blocked);
  EXPECT_EQ(main_cause_of_lateness(of.causes->ranks[1]), ", mostly blocked after the range MPI_Allreduce");
}
INSTANTIATE_TEST_SUITE_P(RunCauses, DelayAtTheEnd, ::testing::Values(0, ms));

// With 13 buckets in flight as with one, the delay of 30 ms that rank 1 computes costs the others 30 ms a step.
TEST(RunCauses, BucketsInFlightCountOnce) {
  for (const InFlight how : {InFlight::pytorch, InFlight::waitall, InFlight::helper}) {
    for (const int buckets : {1, 13}) {
      Trace trace = trace_of(BucketJob{.how = how, .buckets = buckets});
      for (Rank& rank : trace.ranks) {
        StateWriter states(0);
        states.runs(rank.end_ns);
        for (Track& track : rank.tracks) {
          if (track.main) track.states = states.take();
        }
      }
      const RunAnalysis run = analysis_of(trace);
      ASSERT_TRUE(run.causes);
      const LossParts& waiting = run.causes->ranks[0].waiting;
      EXPECT_GT(waiting.sum() / ms, 60 * 20);
      EXPECT_GT(waiting[LossCause::computing], 0.95 * waiting.sum());
    }
  }
}

}  // namespace
}  // namespace paceline::analysis
