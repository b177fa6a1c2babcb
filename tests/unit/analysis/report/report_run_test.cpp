// SPDX-License-Identifier: Apache-2.0
// The figures of a job made by hand are those worked out on paper, to the nanosecond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/run/breakdown.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

constexpr std::int64_t ms = 1'000'000;

RunAnalysis run_of(const Job& job) { return analyse_run(make_trace(job), "runs/hand"); }

std::int64_t in(const RankSummary& rank, Phase phase) { return rank.phase_ns[static_cast<std::size_t>(phase)]; }

TEST(RunAnalysis, PhasesOfEachRankAddUpToItsWallTime) {
  const RunAnalysis run = run_of({.ranks = 2});
  ASSERT_EQ(run.per_rank.size(), 2u);
  for (const auto& rank : run.per_rank) {
    std::int64_t sum = 0;
    for (const std::int64_t ns : rank.phase_ns) sum += ns;
    EXPECT_EQ(sum, rank.wall_ns);
    EXPECT_EQ(rank.wall_ns, 1605 * ms);
  }
  EXPECT_EQ(in(run.per_rank[0], Phase::startup), 1000 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::preprocess), 20 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::forward), 120 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::backward), 200 * ms);
  EXPECT_EQ(in(run.per_rank[1], Phase::backward), 240 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::communication), 80 * ms);
  EXPECT_EQ(in(run.per_rank[1], Phase::communication), 40 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::optimizer), 40 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::evaluate), 75 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::checkpoint), 50 * ms);
  EXPECT_EQ(in(run.per_rank[0], Phase::other), 20 * ms);
}

TEST(RunAnalysis, BreakdownOfOneRank) {
  const RunAnalysis run = run_of({.ranks = 1});
  ASSERT_TRUE(run.breakdown);
  EXPECT_EQ(run.breakdown->wall_ns, 2000 * ms);
  EXPECT_EQ(run.breakdown->parallel_ns, 950 * ms);  // 8 iterations of 100, evaluate 150
  EXPECT_EQ(run.breakdown->serial_ns, 1050 * ms);   // start-up, checkpoint
  EXPECT_EQ(run.breakdown->overhead_ns, 0);
  EXPECT_DOUBLE_EQ(run.breakdown->serial_share, 0.525);
  EXPECT_FALSE(run.breakdown->serial_share_ci95);  // 8 iterations are too few
}

TEST(RunAnalysis, BreakdownOfTwoRanks) {
  const RunAnalysis run = run_of({.ranks = 2});
  EXPECT_EQ(run.breakdown->wall_ns, 1605 * ms);
  EXPECT_EQ(run.breakdown->parallel_ns, 495 * ms);
  EXPECT_EQ(run.breakdown->serial_ns, 1050 * ms);
  EXPECT_EQ(run.breakdown->overhead_ns, 60 * ms);
  EXPECT_DOUBLE_EQ(*run.communication_share_of_step, 0.125);  // (20 + 10) of 2 × 120
}

TEST(RunAnalysis, EvaluationOnOneRankIsSerial) {
  Job job{.ranks = 1};
  job.config.erase("evaluate");
  EXPECT_EQ(run_of(job).breakdown->serial_ns, 1200 * ms);
}

TEST(RunAnalysis, IterationsImagesAndThroughput) {
  const RunAnalysis run = run_of({.ranks = 2});
  EXPECT_EQ(run.iterations.count, 4u);
  EXPECT_EQ(run.iterations.median_ns, 120 * ms);
  EXPECT_EQ(run.iterations.p95_ns, 120 * ms);
  EXPECT_EQ(run.iterations.warmup, 1u);
  EXPECT_DOUBLE_EQ(*run.images, 256);
  EXPECT_NEAR(*run.iterations.steady_images_per_s, 64 / 0.12, 1e-9);
  EXPECT_EQ(run.wall_ns, 1605 * ms);
  EXPECT_EQ(run.span_ns, 1605 * ms);
}

TEST(RunAnalysis, WaitAndTransferAreApart) {
  const RunAnalysis run = run_of({.ranks = 2});
  ASSERT_EQ(run.collectives.size(), 1u);
  EXPECT_EQ(run.collectives[0].operation, "MPI_Allreduce");
  EXPECT_EQ(run.collectives[0].count, 4u);
  EXPECT_EQ(run.collectives[0].bytes, 1'000'000u);
  EXPECT_EQ(run.collectives[0].wait_ns, 40 * ms);
  EXPECT_EQ(run.collectives[0].transfer_ns, 40 * ms);
  EXPECT_DOUBLE_EQ(run.collectives[0].busbw_bytes_per_s, 1e8);  // 1 MB in 10 ms, factor 2(2−1)/2
  EXPECT_EQ(run.waits[0].waited_ns, 40 * ms);
  EXPECT_EQ(run.waits[1].waited_ns, 0);
  EXPECT_EQ(run.waits[1].caused_ns, 40 * ms);
  EXPECT_EQ(run.waits[1].last_count, 4u);
}

TEST(RunAnalysis, AccuracyAndTheTimeToIt) {
  const RunAnalysis good = run_of({.ranks = 1, .accuracy = 0.95});
  EXPECT_DOUBLE_EQ(*good.accuracy, 0.95);
  EXPECT_NEAR(*good.seconds_to_accuracy, 1.95, 1e-12);
  const RunAnalysis poor = run_of({.ranks = 1, .accuracy = 0.85});
  EXPECT_FALSE(poor.seconds_to_accuracy);
  Job lower{.ranks = 1, .accuracy = 0.85};
  lower.config["target_accuracy"] = 0.8;
  EXPECT_NEAR(*run_of(lower).seconds_to_accuracy, 1.95, 1e-12);
}

TEST(RunAnalysis, TakesItsDescriptionFromTheUserWhereTheProgramGivesNone) {
  Trace trace = make_trace({.ranks = 1, .say_config = false});
  EXPECT_FALSE(analyse_run(trace, "r").images);
  trace.ranks[0].set = {{"images_per_iteration", "32"}, {"model", "unet"}};
  const RunAnalysis run = analyse_run(trace, "r");
  EXPECT_EQ(run.images, 256);
  EXPECT_EQ(run.config.text("model"), "unet");
  EXPECT_EQ(run.config.number("images_per_iteration"), 32);
}

TEST(RunAnalysis, IsTheSameFromSummariesThatSeveralProcessesMade) {
  Trace first = make_trace({.ranks = 2}), second = make_trace({.ranks = 2});
  first.ranks.pop_back();
  second.ranks.erase(second.ranks.begin());
  std::vector<RankSummary> summaries = summarise(second);  // in any order
  for (RankSummary& summary : summarise(first)) summaries.push_back(std::move(summary));
  const RunAnalysis merged = analyse_run(std::move(summaries), "runs/hand");
  EXPECT_EQ(merged.waits[0].waited_ns, 40 * ms) << "the collectives of the two are matched";
  // Only the critical path and the predictions need the events of all ranks at once.
  RunAnalysis whole = run_of({.ranks = 2});
  EXPECT_TRUE(whole.critical_path && whole.what_if);
  whole.critical_path.reset();
  whole.what_if.reset();
  EXPECT_EQ(render_json(build_report({merged})), render_json(build_report({whole})));
}

TEST(RunAnalysis, ATraceWithoutEventsHasItsWallTimeOnly) {
  TraceBuilder builder;
  builder.add_rank(0).info().end_ns = 7;
  const RunAnalysis run = analyse_run(builder.finish(), "empty/");
  EXPECT_EQ(run.name, "empty");
  EXPECT_EQ(run.iterations.count, 0u);
  EXPECT_FALSE(run.breakdown);
  EXPECT_FALSE(run.images);
}

TEST(Breakdown, RowsAddUpToTheWallTimeWhateverTheRounding) {
  std::vector<RankSummary> ranks(3);
  for (int r = 0; r < 3; ++r) {
    for (std::size_t p = 0; p < phase_count; ++p) {
      ranks[r].phase_ns[p] = 1 + static_cast<std::int64_t>(p) * 7 + r;
      ranks[r].wall_ns += ranks[r].phase_ns[p];
    }
  }
  const Breakdown b = break_down(ranks, {.ranks = 3});
  std::int64_t rows = 0;
  for (const auto& row : b.rows) rows += row.ns;
  EXPECT_EQ(rows, b.wall_ns);
  EXPECT_EQ(b.parallel_ns + b.serial_ns + b.overhead_ns, b.wall_ns);
}

TEST(Breakdown, WhatCountsAsWhat) {
  const BreakdownRules one{.ranks = 1}, two{.ranks = 2}, kept{.ranks = 2, .global_batch_kept = true};
  EXPECT_EQ(counts_as(Phase::communication, true, one), CountsAs::parallel);
  EXPECT_EQ(counts_as(Phase::communication, true, two), CountsAs::overhead);
  EXPECT_EQ(counts_as(Phase::communication, false, two), CountsAs::overhead);
  EXPECT_EQ(counts_as(Phase::optimizer, true, two), CountsAs::parallel);
  EXPECT_EQ(counts_as(Phase::optimizer, true, kept), CountsAs::serial);
  EXPECT_EQ(counts_as(Phase::other, true, two), CountsAs::parallel);
  EXPECT_EQ(counts_as(Phase::other, false, two), CountsAs::serial);
  EXPECT_EQ(counts_as(Phase::startup, false, two), CountsAs::serial);
}

}  // namespace
}  // namespace paceline::analysis
