// SPDX-License-Identifier: Apache-2.0
// The timeline of phases gives for any stretch of time what all intervals of the rank give.
#include "analysis/phases/phase_timeline.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "analysis/trace/builder.h"
#include "tests/rounds.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

// Ranges of many phases in each other, a pause, a loss, and a stream on which communication runs.
Trace random_trace(std::mt19937_64& random, std::size_t slices) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  const char* names[] = {"startup", "forward", "backward", "allreduce", "evaluate", "preprocess", "layer", "optimizer"};
  const auto length = [&](std::uint64_t most) { return static_cast<std::int64_t>(1 + random() % most); };
  std::int64_t now = 1000;
  for (std::size_t open = 0; slices > 0; now += length(50)) {
    if (open > 0 && random() % 2 == 0) {
      main.pop(now);
      --open;
    } else {
      if (random() % 6 == 0) {
        main.push(now, "cudaDeviceSynchronize", "cuda", "synchronization");
      } else {
        main.push(now, names[random() % std::size(names)]);
      }
      ++open;
      --slices;
    }
  }
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7", 7);
  for (std::int64_t at = 1000; at < now; at += length(400)) {
    const std::int64_t end = at + length(200);
    stream.add_slice(at, end, random() % 2 == 0 ? "ncclDevKernel_AllReduce" : "gemm", "cuda", "kernel");
    at = end;
  }
  rank.info().start_ns = 500;
  rank.info().end_ns = now + 700;
  rank.info().gaps.push_back({now / 2, now / 2 + 300, "outside --iterations"});
  main.add_lost(now / 4, now / 4 + 40, 3);
  return run.finish();
}

// With the intervals kept, and without.
class PhaseTimelines : public ::testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(, PhaseTimelines, ::testing::Values(10.0, 0.0));

TEST_P(PhaseTimelines, GiveWhatAllIntervalsGive) {
  std::mt19937_64 random(11);
  for (const std::size_t count : {1, 2, 511, 512, 513, 3000}) {
    const Trace trace = random_trace(random, count);
    const Rank& rank = trace.ranks[0];
    const RunIndex index(trace);
    const RankPhases phases = phases_of(index.phases(), rank);
    const PhaseTimeline timeline(index.phases(), rank, index.exposed(0), GetParam());
    EXPECT_EQ(timeline.totals(), phases.total_ns);
    for (std::size_t round = 0; round < 300; round += test::stride(10)) {
      const auto from = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rank.end_ns + 500));
      const auto to = round % 2 == 0
                          ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rank.end_ns + 500))
                          : from + static_cast<std::int64_t>(random() % 300);
      PhaseTimeline::Totals expected{};
      std::vector<PhaseInterval> touched;
      for (const PhaseInterval& interval : phases.intervals) {
        const std::int64_t start = std::max(from, interval.start_ns), end = std::min(to, interval.end_ns);
        if (end <= start) continue;
        expected[static_cast<std::size_t>(interval.phase)] += end - start;
        touched.push_back({start, end, interval.phase});
      }
      ASSERT_EQ(timeline.between(from, to), expected) << count << " slices, " << from << " to " << to;
      const auto found = timeline.intervals(from, to);
      ASSERT_EQ(found.size(), touched.size()) << count << " slices, " << from << " to " << to;
      for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].start_ns, touched[i].start_ns);
        ASSERT_EQ(found[i].end_ns, touched[i].end_ns);
        ASSERT_EQ(found[i].phase, touched[i].phase);
      }
      const auto begun = std::ranges::count_if(phases.intervals, [&](const PhaseInterval& interval) {
        return from <= interval.start_ns && interval.start_ns < to;
      });
      ASSERT_EQ(timeline.count_between(from, to), static_cast<std::size_t>(begun));
      const auto whole = std::ranges::find_if(phases.intervals, [&](const PhaseInterval& interval) {
        return interval.start_ns <= from && from < interval.end_ns;
      });
      const auto at = timeline.at(from);
      ASSERT_EQ(at.has_value(), whole != phases.intervals.end());
      if (!at) continue;
      ASSERT_EQ(at->start_ns, whole->start_ns);
      ASSERT_EQ(at->end_ns, whole->end_ns);
      ASSERT_EQ(at->phase, whole->phase);
    }
  }
}

TEST_P(PhaseTimelines, GiveTheSameFromLeftToRight) {
  std::mt19937_64 random(12);
  const Trace trace = random_trace(random, 2000);
  const Rank& rank = trace.ranks[0];
  const RunIndex index(trace);
  const PhaseTimeline timeline(index.phases(), rank, index.exposed(0), GetParam());
  for (const std::int64_t step : {1, 37, 5'000}) {
    PhaseTimeline::Cursor cursor(timeline);
    for (std::int64_t time = -20; time < std::min<std::int64_t>(rank.end_ns, 300 * step) + 20; time += step) {
      ASSERT_EQ(cursor.until(time), timeline.between(std::numeric_limits<std::int64_t>::min(), time)) << time;
    }
  }
}

TEST(PhaseTimeline, OfARankWithoutSlicesIsItsWholeTime) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.add_main_thread();
  rank.info().end_ns = 1000;
  const Trace trace = run.finish();
  const RunIndex index(trace);
  const PhaseTimeline timeline(index.phases(), trace.ranks[0], index.exposed(0));
  EXPECT_EQ(timeline.between(-100, 400)[static_cast<std::size_t>(Phase::other)], 400);
  EXPECT_FALSE(timeline.at(1000).has_value());
  EXPECT_EQ(timeline.count_between(0, 1000), 1U);
}

}  // namespace
}  // namespace paceline::analysis
