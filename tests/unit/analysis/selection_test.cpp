#include "analysis/metrics/selection.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

std::vector<PhaseInterval> random_intervals(std::mt19937_64& random, std::size_t count) {
  std::vector<PhaseInterval> intervals;
  std::int64_t now = 1000;
  for (std::size_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::int64_t>(1 + random() % 1000);
    intervals.push_back({now, now + length, static_cast<Phase>(random() % phase_count)});
    now += length;
  }
  return intervals;
}

TEST(PhaseTotals, AreWhatAScanOfAllIntervalsGives) {
  std::mt19937_64 random(11);
  for (const std::size_t count : {1, 63, 64, 65, 128, 1000}) {
    const auto intervals = random_intervals(random, count);
    const PhaseTotals totals(intervals);
    for (int round = 0; round < 200; ++round) {
      const std::int64_t last = intervals.back().end_ns + 500;
      const auto from = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(last));
      const auto to = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(last));
      std::array<std::int64_t, phase_count> expected{};
      for (const auto& interval : intervals) {
        const std::int64_t shared = std::min(to, interval.end_ns) - std::max(from, interval.start_ns);
        if (shared > 0) expected[static_cast<std::size_t>(interval.phase)] += shared;
      }
      ASSERT_EQ(totals.between(from, to), expected) << count << " intervals, " << from << " to " << to;
    }
  }
}

TEST(PhaseTotals, OfNoIntervalsAreZero) {
  const std::vector<PhaseInterval> none;
  const PhaseTotals totals(none);
  EXPECT_EQ(totals.between(0, 100), (std::array<std::int64_t, phase_count>{}));
  EXPECT_EQ(totals.interval_at(5), 0u);
}

TEST(PhaseTotals, FindTheIntervalOfATime) {
  const std::vector<PhaseInterval> intervals{{0, 10, Phase::startup}, {10, 20, Phase::forward}};
  const PhaseTotals totals(intervals);
  EXPECT_EQ(totals.interval_at(0), 0u);
  EXPECT_EQ(totals.interval_at(9), 0u);
  EXPECT_EQ(totals.interval_at(10), 1u);
  EXPECT_EQ(totals.interval_at(20), 2u);
}

TEST(IterationAt, IsTheOneAroundATime) {
  const std::vector<Iteration> iterations{{.number = 5, .start_ns = 100, .duration_ns = 50},
                                          {.number = 6, .start_ns = 160, .duration_ns = 40}};
  EXPECT_EQ(iteration_at(iterations, 99), nullptr);
  EXPECT_EQ(iteration_at(iterations, 100)->number, 5);
  EXPECT_EQ(iteration_at(iterations, 149)->number, 5);
  EXPECT_EQ(iteration_at(iterations, 150), nullptr);
  EXPECT_EQ(iteration_at(iterations, 199)->number, 6);
  EXPECT_EQ(iteration_at(iterations, 200), nullptr);
}

TEST(DurationsOf, CountAllThreadsOfTheRankAndNoOtherName) {
  TraceBuilder builder;
  RankBuilder& rank = builder.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  for (const std::int64_t length : {10, 30, 20}) main.add_slice(length * 10, length * 11, "forward");
  main.add_slice(500, 900, "backward");
  rank.add_track(TrackKind::thread, "loader", 2).add_slice(0, 40, "forward");
  const Trace trace = builder.finish();
  const auto statistics = durations_of(trace, trace.ranks[0].tracks, trace.names.find("forward"));
  EXPECT_EQ(statistics.count, 4u);
  EXPECT_EQ(statistics.total_ns, 100);
  EXPECT_EQ(statistics.minimum_ns, 10);
  EXPECT_EQ(statistics.maximum_ns, 40);
  EXPECT_EQ(statistics.median_ns, 25);
  EXPECT_EQ(durations_of(trace, trace.ranks[0].tracks, trace.names.find("missing")).count, 0u);
}

}  // namespace
}  // namespace paceline::analysis
