// SPDX-License-Identifier: Apache-2.0
// Lost events: their time belongs to no phase, and iterations that they touch do not count.
#include "analysis/phases/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/phases/phases.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Start-up until 100, then iterations of 100 with a forward of 80; the last one ends at 1000.
void add_iterations(TrackBuilder& main, std::initializer_list<int> numbers) {
  for (const int i : numbers) {
    main.push(100 + 100 * i, "iteration", "paceline.trainer", "iteration");
    main.argument("payload", i);
    main.add_slice(110 + 100 * i, 190 + 100 * i, "forward", "paceline.trainer", "forward");
    main.pop(200 + 100 * i);
  }
}

std::int64_t sum(const RankPhases& phases) {
  std::int64_t total = 0;
  for (const std::int64_t ns : phases.total_ns) total += ns;
  return total;
}

TEST(Losses, BelongToNoPhaseAndTheTimeAfterThemIsNoStartUp) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  TrackBuilder& main = rank.add_main_thread();
  add_iterations(main, {5, 6, 7, 8});
  main.add_lost(150, 350, 1000);
  const Trace trace = run.finish();
  const RankPhases phases = phases_of(trace, trace.ranks[0]);
  EXPECT_EQ(phases.total_ns[static_cast<std::size_t>(Phase::startup)], 150);
  EXPECT_EQ(phases.total_ns[static_cast<std::size_t>(Phase::other)], 250 + 4 * 20);
  EXPECT_EQ(phases.total_ns[static_cast<std::size_t>(Phase::forward)], 4 * 80);
  EXPECT_EQ(sum(phases), trace.ranks[0].recorded_ns());
  EXPECT_EQ(trace.ranks[0].recorded_ns(), 800);
}

TEST(Losses, TouchTheIterationsThatTheyMeetOrHide) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  TrackBuilder& main = rank.add_main_thread();
  add_iterations(main, {0, 1, 4, 5, 7});
  main.add_lost(250, 450, 10);  // inside iteration 1, and over 2 and 3, which nobody saw
  main.add_lost(700, 700, 1);   // one event where 5 ends; 6 was never seen
  const Trace trace = run.finish();
  const auto iterations = iterations_of(trace, trace.ranks[0], phases_of(trace, trace.ranks[0]));
  std::vector<bool> finished;
  for (const Iteration& iteration : iterations) finished.push_back(iteration.finished);
  EXPECT_THAT(finished, ElementsAre(true, false, true, false, true));
  EXPECT_THAT(touched_iterations(trace.ranks[0], iterations), ElementsAre(1, 2, 3, 5, 6));
}

TEST(Losses, OfAHelperThreadLeaveTheMainThreadWhole) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  rank.info().dropped["no_free_chunk"] = 7;
  add_iterations(rank.add_main_thread(), {0, 1});
  rank.add_track(TrackKind::thread, "loader", 2).add_lost(0, 900, 7);
  const Trace trace = run.finish();
  const RankLosses losses = losses_of(trace.ranks[0]);
  EXPECT_EQ(losses.events, 7U);
  EXPECT_FALSE(losses.main_thread);
  EXPECT_TRUE(losses.other_threads);
  EXPECT_TRUE(losses.located);
  EXPECT_THAT(losses.causes, ElementsAre("no_free_chunk"));
  const auto iterations = iterations_of(trace, trace.ranks[0], phases_of(trace, trace.ranks[0]));
  EXPECT_THAT(touched_iterations(trace.ranks[0], iterations), IsEmpty());
}

TEST(Losses, WithoutATimeMayBeAnywhere) {
  Rank rank;
  rank.dropped["no_free_chunk"] = 7;
  EXPECT_FALSE(losses_of(rank).located);
  EXPECT_TRUE(losses_of(rank).main_thread);
  rank.dropped = {{"payload_cut", 7}, {"device", 3}, {"too_many_names", 2}};
  EXPECT_EQ(losses_of(rank).events, 0U);
  EXPECT_FALSE(losses_of(rank).main_thread);
}

}  // namespace
}  // namespace paceline::analysis
