// SPDX-License-Identifier: Apache-2.0
// Iterations are found, numbered and divided into phases that add up to their duration.
#include "analysis/phases/iterations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

std::vector<Iteration> iterations_of(const Trace& trace) {
  return iterations_of(trace, trace.ranks[0], phases_of(trace, trace.ranks[0]));
}

std::int64_t in(const Iteration& iteration, Phase phase) { return iteration.phase_ns[static_cast<std::size_t>(phase)]; }

TEST(Iterations, TakeTheirNumberFromThePayloadAndTheirPhasesFromWhatIsInside) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  for (int i = 0; i < 3; ++i) {
    const std::int64_t t = 1000 * i;
    main.push(t, "iteration", "paceline.trainer", "iteration");
    main.argument("payload", 40 + i);
    main.add_slice(t + 10, t + 200, "forward", "paceline.trainer", "forward");
    main.add_slice(t + 200, t + 600 + i, "backward", "paceline.trainer", "backward");
    main.pop(t + 700 + i);
  }
  const Trace trace = run.finish();
  const std::vector<Iteration> iterations = iterations_of(trace);
  ASSERT_EQ(iterations.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(iterations[i].number, 40 + i);
    EXPECT_EQ(iterations[i].start_ns, 1000 * i);
    EXPECT_EQ(iterations[i].duration_ns, 700 + i);
    EXPECT_EQ(in(iterations[i], Phase::forward), 190);
    EXPECT_EQ(in(iterations[i], Phase::backward), 400 + i);
    EXPECT_EQ(in(iterations[i], Phase::other), 110);
  }
  const IterationSummary summary = summarize(iterations);
  EXPECT_EQ(summary.count, 3U);
  EXPECT_EQ(summary.median_ns, 701);
  EXPECT_EQ(summary.p95_ns, 702);  // 701.9
}

TEST(Iterations, OfOtherProgramsAreFoundByName) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 10, "ProfilerStep#7");
  main.add_slice(10, 20, "step 8");
  main.add_slice(20, 30, "iteration");
  main.add_slice(30, 40, "stepping stone");
  const Trace trace = run.finish();
  const std::vector<Iteration> iterations = iterations_of(trace);
  ASSERT_EQ(iterations.size(), 3U);
  EXPECT_EQ(iterations[0].number, 7);
  EXPECT_EQ(iterations[1].number, 8);
  EXPECT_EQ(iterations[2].number, 2);  // counted
}

TEST(Iterations, InsideAnIterationAreNotCountedAgain) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 100, "iteration");
  main.add_slice(10, 20, "step");
  const Trace trace = run.finish();
  EXPECT_EQ(iterations_of(trace).size(), 1U);
}

TEST(Iterations, ThatNeverEndedAreListedButNotSummedUp) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  TrackBuilder& main = rank.add_main_thread();
  main.add_slice(0, 10, "iteration");
  main.push(20, "iteration");
  const Trace trace = run.finish();
  const std::vector<Iteration> iterations = iterations_of(trace);
  ASSERT_EQ(iterations.size(), 2U);
  EXPECT_TRUE(iterations[0].finished);
  EXPECT_FALSE(iterations[1].finished);
  EXPECT_EQ(summarize(iterations).count, 1U);
}

}  // namespace
}  // namespace paceline::analysis
