// SPDX-License-Identifier: Apache-2.0
// Allreduces of which a trace has only ranges: an algorithm of messages, or of copies in shared memory.
#include "analysis/communication/range_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/communication/collective_costs.h"
#include "analysis/run/run_analysis.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace range_collectives_test {
namespace {

constexpr std::int64_t ms = 1'000'000;
const std::string trainer = "paceline.trainer";

// Two ranks, of which rank 1 arrives `late_ms` later (and up to 2 ms of noise). Both leave 5 ms after the last one, or
// at once where they do not wait. A small call at the end of the range agrees on the loss.
struct Job {
  std::int64_t late_ms = 20;
  bool waits = true, calls = false;
  int ranges_of_rank_1 = 60, iterations = 60;
};

Trace trace_of(const Job& job) {
  TraceBuilder run;
  TrackBuilder* mains[] = {&run.add_rank(0, 2).add_main_thread(), &run.add_rank(1, 2).add_main_thread()};
  std::int64_t now = 0;
  for (int i = 0; i < job.iterations; ++i) {
    const std::int64_t arrivals[] = {now + (30 + i * 7 % 3) * ms, now + (30 + (i * 5 + 1) % 3 + job.late_ms) * ms};
    const std::int64_t last = std::max(arrivals[0], arrivals[1]), end = last + 6 * ms;
    for (int r = 0; r < 2; ++r) {
      TrackBuilder& main = *mains[r];
      const std::int64_t leaves = job.waits ? last + 5 * ms : arrivals[r] + 1 * ms;
      main.push(now, "iteration", trainer, "iteration");
      main.argument("payload", i);
      main.add_slice(now, arrivals[r], "backward", trainer, "backward");
      if (r == 0 || i < job.ranges_of_rank_1) {
        main.push(arrivals[r], "allreduce", trainer, "allreduce");
        main.argument("payload", 4'000'000);
        main.add_slice(leaves - (job.calls ? 4 * ms : 1000), leaves, "MPI_Allreduce", "mpi", "collective");
        main.argument("bytes", job.calls ? 4e6 : 8);
        main.text_argument("communicator", "MPI_COMM_WORLD");
        main.argument("sequence", i);
        main.pop(leaves);
      }
      main.pop(end);
    }
    now = end;
  }
  return run.finish();
}

std::size_t ranges_in(const RunIndex& index) {
  return static_cast<std::size_t>(std::ranges::count(index.collectives().matched, true, &Collective::of_range));
}

TEST(RangeCollectives, ARankThatIsLateForThemIsNamed) {
  const Trace trace = trace_of({});
  const RunIndex index(trace);
  EXPECT_EQ(ranges_in(index), 60U);
  const RunAnalysis run = analyse_ranks(index, "run");
  ASSERT_TRUE(run.lateness.judged);
  ASSERT_EQ(run.lateness.late.size(), 1U);
  EXPECT_EQ(run.lateness.late.front().rank, 1U);
  EXPECT_NEAR(run.lateness.late.front().behind_ns, 20.0 * ms, 0.1 * ms);
  const auto waits = waits_of(index.collectives(), 2);
  EXPECT_NEAR(static_cast<double>(waits[0].waited_ns), 60 * 20.0 * ms, 2 * ms);
  const CollectiveRow& row = index.collectives().rows.front();
  EXPECT_EQ(row.operation, "allreduce");
  EXPECT_EQ(row.bytes, 4'000'000U);
  EXPECT_EQ(row.transfer_ns, 60 * (5 * ms - 1000)) << "the small call at the end is not a part of it";
}

// Their messages show the rate of a link, and an algorithm has steps that a transfer does not show.
TEST(RangeCollectives, SayNothingAboutTheRateOfALink) {
  const Trace trace = trace_of({}), with_calls = trace_of({.calls = true});
  const std::vector<LinkEnd> ends = {{.machine = "a", .host = "a"}, {.machine = "b", .host = "b"}};
  EXPECT_TRUE(link_uses(RunIndex(trace).collectives(), ends).empty());
  EXPECT_EQ(link_uses(RunIndex(with_calls).collectives(), ends).size(), 1U);
}

TEST(RangeCollectives, BalancedRanksAreNotAccused) {
  const Trace trace = trace_of({.late_ms = 0});
  const RunIndex index(trace);
  EXPECT_EQ(ranges_in(index), 60U);
  EXPECT_TRUE(analyse_ranks(index, "run").lateness.late.empty());
}

TEST(RangeCollectives, CallsInsideThatMoveAsMuchAreTheCollectives) {
  const Trace trace = trace_of({.calls = true});
  const RunIndex index(trace);
  EXPECT_EQ(ranges_in(index), 0U);
  EXPECT_EQ(index.collectives().matched.size(), 60U);
}

TEST(RangeCollectives, RanksThatDoNotWaitForEachOtherMakeNone) {
  const Trace trace = trace_of({.waits = false});
  EXPECT_EQ(ranges_in(RunIndex(trace)), 0U);
}

TEST(RangeCollectives, RanksWithDifferentNumbersOfThemMakeNone) {
  const Trace trace = trace_of({.ranges_of_rank_1 = 59});
  const RunIndex index(trace);
  EXPECT_EQ(ranges_in(index), 0U);
  EXPECT_EQ(index.collectives().unmatched_calls, 1U) << "the small call of rank 0 alone";
}

}  // namespace
}  // namespace range_collectives_test
}  // namespace paceline::analysis
