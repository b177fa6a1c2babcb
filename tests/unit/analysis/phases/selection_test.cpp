// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/selection.h"

#include <gtest/gtest.h>

#include <random>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

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
