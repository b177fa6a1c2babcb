// SPDX-License-Identifier: Apache-2.0
// Waiting and lateness count once where collectives are in flight together, however many they are.
#include "analysis/communication/blocked_time.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/communication/lateness.h"
#include "analysis/report/build.h"
#include "analysis/run/run_analysis.h"
#include "tests/unit/analysis/buckets_in_flight.h"
#include "tests/unit/analysis/checked_report.h"

namespace paceline::analysis {
namespace blocked_time_test {
namespace {

constexpr std::int64_t ms = 1'000'000;

void expect_blocked_within_wall(const RunAnalysis& run) {
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    EXPECT_GE(run.waits[r].waited_ns, 0) << "rank " << r;
    EXPECT_LE(run.waits[r].waited_ns, run.waits[r].blocked_ns) << "rank " << r;
    EXPECT_LE(run.waits[r].blocked_ns, run.per_rank[r].wall_ns) << "rank " << r;
  }
}

class InFlightTogether : public ::testing::TestWithParam<std::tuple<InFlight, int, int>> {};

TEST_P(InFlightTogether, ADelayOf30MsIs30MsWithAnyNumberOfBuckets) {
  const auto& [how, ranks, buckets] = GetParam();
  const RunAnalysis run = analyse_run(trace_of({.how = how, .ranks = ranks, .buckets = buckets}), "run");
  const LatenessTable& table = run.lateness_table;
  ASSERT_EQ(table.iterations(), 54U);
  for (std::size_t i = 0; i < table.iterations(); ++i) {
    EXPECT_NEAR(table.behind_ns[i * table.ranks + 1], 30e6, 0.02e6);
  }
  ASSERT_TRUE(run.lateness.judged);
  ASSERT_EQ(run.lateness.late.size(), 1U);
  EXPECT_EQ(run.lateness.late[0].rank, 1U);
  EXPECT_LE(run.lateness.late[0].share_of_step, 1);
  EXPECT_GT(run.lateness.late[0].share_of_step, 0.3);
  ASSERT_TRUE(run.lateness_causes[0].phase) << "no phase explains the delay";
  EXPECT_EQ(run.lateness_causes[0].phase->phase, Phase::other);
  EXPECT_NEAR(run.lateness_causes[0].phase->share_of_delay, 1, 0.01);
  expect_blocked_within_wall(run);
  const bool in_order = how == InFlight::helper || how == InFlight::nccl;
  for (std::size_t r = 0; r < run.waits.size(); ++r) {
    const double waited_ms = 1e-6 * static_cast<double>(run.waits[r].waited_ns) / 60;
    // Where the rank goes through the buckets one by one, the transfers of the earlier ones are no waiting.
    EXPECT_LE(waited_ms, r == 1 ? 0.02 : 30.02) << "rank " << r;
    EXPECT_GE(waited_ms, r == 1 ? 0 : in_order ? 30 - 6.02 : 29.98) << "rank " << r;
  }
  EXPECT_EQ(run.waits[1].caused_ns + run.waits[0].caused_ns,
            run.waits[0].waited_ns + run.waits[1].waited_ns + (ranks > 2 ? run.waits[2].waited_ns : 0));
  checked_text(build_report({run}));
}

INSTANTIATE_TEST_SUITE_P(Buckets, InFlightTogether,
                         ::testing::Combine(::testing::Values(InFlight::pytorch, InFlight::waitall, InFlight::helper,
                                                              InFlight::nccl),
                                            ::testing::Values(2, 3), ::testing::Values(1, 2, 13)));

// On rank 0 the kernel runs from 10 to 100, and compute covers 10 to 40 and 60 to 70; rank 1 comes at 80.
TEST(BlockedTimes, OfADeviceIsWhatItsOwnComputeDoesNotCover) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.add_main_thread().add_slice(0, 200, "train");
    TrackBuilder& nccl = rank.add_track(TrackKind::nccl, "NCCL c");
    nccl.add_slice(r == 0 ? 10 : 80, 100, "ncclAllReduce", "nccl", "collective");
    nccl.text_argument("communicator", "c");
    nccl.argument("sequence", 0);
    TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7");
    stream.add_slice(0, 40, "gemm", "cuda", "kernel");
    stream.add_slice(60, 70, "gemm", "cuda", "kernel");
  }
  const RunAnalysis found = analyse_run(run.finish(), "run");
  EXPECT_EQ(found.waits[0].waited_ns, 20 + 10);
  EXPECT_EQ(found.waits[0].blocked_ns, 20 + 30);
  EXPECT_EQ(found.waits[1].waited_ns, 0);
  EXPECT_EQ(found.waits[1].blocked_ns, 20);
  EXPECT_EQ(found.waits[1].caused_ns, 30);
}

TEST(Shares, AboveAHundredPercentAreFound) {
  EXPECT_NE(impossible_share("That costs 539.0 % of a step, 12 rank-seconds"), "");
  EXPECT_NE(impossible_share("| 1 | 20.3 s (291.0 %) |"), "");
  EXPECT_NE(impossible_share("a rank waited 9 s (1,291 % of its wall time) in"), "");
  EXPECT_EQ(impossible_share("waited 9 s (100.0 % of its wall time), slower by 130 % of a step, +130 % of the time"),
            "");
  EXPECT_EQ(impossible_share("% of a step, 120 % of a core"), "");
}

struct Call {
  std::int64_t start, end;
  const char* communicator = "w";
  int sequence = 0;
};

void add(TrackBuilder& track, const Call& call, const char* name = "MPI_Allreduce") {
  track.add_slice(call.start, call.end, name, "mpi", "collective");
  track.text_argument("communicator", call.communicator);
  track.argument("sequence", call.sequence);
}

TEST(BlockedTimes, OfACallInsideACallCountsOnce) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    const std::int64_t start = r == 0 ? 0 : 50;
    add(main, {start, 100, "outer"}, "gloo:all_reduce");
    add(main, {start + 5, 90, "inner"});
  }
  const Collectives found = match_collectives(run.finish());
  const std::vector<RankWaits> waits = waits_of(found, 2);
  EXPECT_EQ(waits[0].waited_ns, 50);
  EXPECT_EQ(waits[0].blocked_ns, 100);
  EXPECT_EQ(waits[1].caused_ns, 50);
  EXPECT_EQ(waits[1].waited_ns, 0);
  std::int64_t of_rows = 0;
  for (const CollectiveRow& row : found.rows) of_rows += row.wait_ns;
  EXPECT_EQ(of_rows, 50) << "the rows share the waits out";
}

// Two threads without phases, each with a communicator of its own: 0 to 60 and 40 to 100. The last members come at 30
// and 80.
TEST(BlockedTimes, OfTwoCommunicatorsIsTheirUnion) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().start_ns = 0, rank.info().end_ns = 200;
    rank.add_main_thread();
    add(rank.add_track(TrackKind::thread, "a", 2), {r == 0 ? 0 : 30, 60, "row"});
    add(rank.add_track(TrackKind::thread, "b", 3), {r == 0 ? 40 : 80, 100, "column"});
  }
  const std::vector<RankWaits> waits = waits_of(match_collectives(run.finish()), 2);
  EXPECT_EQ(waits[0].blocked_ns, 100);
  EXPECT_EQ(waits[0].waited_ns, 30 + 40) << "until 40 for the one, until 80 for the other";
  EXPECT_EQ(waits[1].blocked_ns, 30 + 20);
  EXPECT_EQ(waits[1].waited_ns, 0);
}

// A second thread that tests for its request again and again is blocked from the first test on, where nothing hides it:
// the main thread works until 30, and the last rank posts at 80.
TEST(BlockedTimes, OfAHelperThreadThatPollsBeginsWithTheFirstTest) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.add_main_thread().add_slice(0, 30, "forward", "paceline.trainer", "forward");
    TrackBuilder& helper = rank.add_track(TrackKind::thread, "communication", 2);
    const std::int64_t start = r == 0 ? 10 : 80;
    helper.push(start - 2, "wait", "paceline.trainer", "wait");
    helper.add_slice(start, start + 1, "MPI_Ibarrier", "mpi", "collective");
    helper.text_argument("communicator", "w");
    helper.argument("sequence", 0);
    helper.argument("request", 4);
    for (std::int64_t at = start + 2; at < 100; at += 5) helper.add_slice(at, at + 1, "MPI_Test", "mpi", "wait");
    helper.add_slice(100, 101, "MPI_Test", "mpi", "wait");
    helper.argument("request", 4);
    helper.pop(102);
  }
  const RunAnalysis found = analyse_run(run.finish(), "run");
  EXPECT_EQ(found.waits[0].waited_ns, 80 - 30);
  EXPECT_EQ(found.waits[0].blocked_ns, 101 - 30);
  EXPECT_EQ(found.waits[1].waited_ns, 0);
  EXPECT_EQ(found.waits[1].blocked_ns, 101 - 82);
}

TEST(BlockedTimes, OfAPauseOfTheRecordingDoesNotCount) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().gaps.push_back({.start_ns = 20, .end_ns = 60, .reason = "paused"});
    add(rank.add_main_thread(), {r == 0 ? 0 : 70, 100});
  }
  const std::vector<RankWaits> waits = waits_of(match_collectives(run.finish()), 2);
  EXPECT_EQ(waits[0].waited_ns, 20 + 10);
  EXPECT_EQ(waits[0].blocked_ns, 20 + 40);
}

TEST(BlockedTimes, IsTheUnionOfRandomCallsAndEachPartBelongsToOneOfThem) {
  std::mt19937 random(7);
  const auto draw = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<BlockedTime> calls;
    Intervals times;
    for (std::int64_t n = 1 + draw(30); n > 0; --n) {
      const std::int64_t start = draw(200), end = start + draw(40);
      calls.push_back({start, end, draw(260), static_cast<std::uint32_t>(calls.size())});
      if (start < end) times.push_back({start, end});
    }
    const std::vector<BlockedTime> intervals = outermost(calls);
    std::int64_t sum = 0, before = -1;
    for (const BlockedTime& interval : intervals) {
      const BlockedTime& call = calls[interval.collective];
      EXPECT_LT(interval.start_ns, interval.end_ns);
      EXPECT_GE(interval.start_ns, before) << "they are disjoint and sorted";
      EXPECT_EQ(interval.start_ns, call.start_ns);
      EXPECT_LE(interval.end_ns, call.end_ns);
      EXPECT_GE(interval.wait_ns(), 0);
      EXPECT_LE(interval.wait_ns(), interval.length_ns());
      sum += interval.length_ns(), before = interval.end_ns;
    }
    EXPECT_EQ(sum, total_ns(merged(times)));
    const std::int64_t from = draw(100), to = from + draw(150);
    EXPECT_EQ(blocked_ns(intervals, from, to), total_ns(common(merged(times), {{from, to}})));
  }
}

// Ranks that make random calls on random threads and communicators.
TEST(BlockedTimes, OfRandomTracesIsWithinTheWallTime) {
  std::mt19937 random(11);
  const auto draw = [&](int limit) { return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(limit)); };
  for (int round = 0; round < 60; ++round) {
    const int ranks = 2 + round % 2, collectives = 20;
    TraceBuilder run;
    std::vector<std::vector<TrackBuilder*>> tracks;
    for (int r = 0; r < ranks; ++r) {
      RankBuilder& rank = run.add_rank(r, ranks);
      tracks.push_back({&rank.add_main_thread(), &rank.add_track(TrackKind::thread, "a", 2),
                        &rank.add_track(TrackKind::nccl, "NCCL c")});
      TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7");
      for (int k = 0; k < 10; ++k) {
        const std::int64_t start = 100 * k + draw(60);
        stream.add_slice(start, start + draw(40), "gemm", "cuda", "kernel");
      }
    }
    for (int c = 0; c < collectives; ++c) {
      const std::int64_t where = draw(3), from = draw(900);
      for (int r = 0; r < ranks; ++r) {
        const std::int64_t start = from + draw(60);
        add(*tracks[static_cast<std::size_t>(r)][static_cast<std::size_t>(where)], {start, start + draw(120),
                                                                                    where == 0   ? "w"
                                                                                    : where == 1 ? "h"
                                                                                                 : "c",
                                                                                    c});
      }
    }
    const RunAnalysis found = analyse_run(run.finish(), "run");
    expect_blocked_within_wall(found);
    std::int64_t waited = 0, caused = 0;
    for (const RankWaits& waits : found.waits) waited += waits.waited_ns, caused += waits.caused_ns;
    EXPECT_EQ(waited, caused);
  }
}

}  // namespace
}  // namespace blocked_time_test
}  // namespace paceline::analysis
