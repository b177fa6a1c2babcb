// SPDX-License-Identifier: Apache-2.0
// Every nanosecond of a rank belongs to exactly one phase, and to the right one.
#include "analysis/phases/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "analysis/phases/phase_rules.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

constexpr const char* trainer = "paceline.trainer";

// A range of our trainer's, named as its category.
void range(TrackBuilder& track, std::int64_t start, std::int64_t end, const char* category) {
  track.add_slice(start, end, category, trainer, category);
}

std::map<std::string, std::int64_t> totals(const RankPhases& phases) {
  std::map<std::string, std::int64_t> result;
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (phases.total_ns[i] != 0) result[std::string(phase_name(static_cast<Phase>(i)))] = phases.total_ns[i];
  }
  return result;
}

using Totals = std::map<std::string, std::int64_t>;

TEST(Phases, OfAHandMadeRunAreExactlyThoseWrittenDown) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().start_ns = 0;
  rank.info().end_ns = 1000;
  TrackBuilder& main = rank.add_main_thread();
  range(main, 20, 90, "startup");
  main.add_slice(30, 50, "MPI_Init", "mpi", "management");
  range(main, 100, 300, "iteration");
  range(main, 100, 110, "preprocess");
  range(main, 110, 150, "forward");
  main.add_slice(112, 140, "layer1.0.conv1", trainer, "layer");
  range(main, 150, 230, "backward");
  range(main, 230, 280, "allreduce");
  main.add_slice(232, 279, "MPI_Allreduce", "mpi", "collective");
  range(main, 282, 298, "optimizer");
  range(main, 400, 600, "evaluate");
  range(main, 410, 500, "forward");
  range(main, 500, 550, "preprocess");
  main.add_slice(560, 590, "MPI_Allreduce", "mpi", "collective");
  range(main, 700, 750, "checkpoint");
  main.add_slice(900, 1000, "MPI_Finalize", "mpi", "management");
  const Trace trace = run.finish();

  const RankPhases phases = phases_of(trace, trace.ranks[0]);
  EXPECT_EQ(totals(phases), (Totals{{"startup", 100},  // all before the first iteration
                                    {"preprocess", 10},
                                    {"forward", 40},  // its layer is part of it
                                    {"backward", 80},
                                    {"communication", 80},  // 50 in the iteration, 30 in the evaluation
                                    {"optimizer", 16},
                                    {"evaluate", 170},  // with the forward and preprocess inside it
                                    {"checkpoint", 50},
                                    {"other", 454}}));
}

TEST(Phases, CoverTheRankWithoutGapOrOverlapAndMergeNeighbours) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().start_ns = 0;
  rank.info().end_ns = 100;
  TrackBuilder& main = rank.add_main_thread();
  range(main, 10, 90, "iteration");
  range(main, 20, 40, "forward");
  range(main, 40, 60, "forward");
  const Trace trace = run.finish();
  const RankPhases phases = phases_of(trace, trace.ranks[0]);
  ASSERT_EQ(phases.intervals.size(), 4U);
  EXPECT_EQ(phases.intervals[0].phase, Phase::startup);
  EXPECT_EQ(phases.intervals[0].end_ns, 10);
  EXPECT_EQ(phases.intervals[1].phase, Phase::other);
  EXPECT_EQ(phases.intervals[2].phase, Phase::forward);
  EXPECT_EQ(phases.intervals[2].start_ns, 20);
  EXPECT_EQ(phases.intervals[2].end_ns, 60);
  EXPECT_EQ(phases.intervals[3].end_ns, 100);
}

TEST(Phases, FollowTheMainThreadOnly) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  range(rank.add_main_thread(), 0, 100, "forward");
  range(rank.add_track(TrackKind::thread, "loader", 2), 0, 100, "preprocess");
  const Trace trace = run.finish();
  EXPECT_EQ(totals(phases_of(trace, trace.ranks[0])), (Totals{{"forward", 100}}));
}

TEST(Phases, OfAProgramWithoutIterationsStartWithTheEndOfMpiInit) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  TrackBuilder& main = rank.add_main_thread();
  main.add_slice(100, 150, "read input");
  main.add_slice(200, 300, "MPI_Init", "mpi", "management");
  main.add_slice(400, 500, "MPI_Bcast", "mpi", "collective");
  const Trace trace = run.finish();
  EXPECT_EQ(totals(phases_of(trace, trace.ranks[0])),
            (Totals{{"startup", 300}, {"communication", 100}, {"other", 600}}));
}

TEST(Phases, OfAProgramWithNeitherIterationsNorMpiStartWithItsFirstSlice) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  rank.add_main_thread().add_slice(250, 400, "solve");
  const Trace trace = run.finish();
  EXPECT_EQ(totals(phases_of(trace, trace.ranks[0])), (Totals{{"startup", 250}, {"other", 750}}));
}

TEST(Phases, OfARankWithoutEventsAreOther) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().start_ns = 5;
  rank.info().end_ns = 1000;
  const Trace trace = run.finish();
  EXPECT_EQ(totals(phases_of(trace, trace.ranks[0])), (Totals{{"other", 995}}));
}

TEST(Phases, SlicesBeyondTheRanksEndAreCutThere) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().start_ns = 50;
  rank.info().end_ns = 100;
  range(rank.add_main_thread(), 0, 200, "forward");
  const Trace trace = run.finish();
  EXPECT_EQ(totals(phases_of(trace, trace.ranks[0])), (Totals{{"forward", 50}}));
}

// The simplest correct version: asks for each nanosecond which slices lie around it, from the outermost inward.
Phase phase_at(const PhaseTable& rules, const Rank& rank, std::int64_t time, std::int64_t startup_end) {
  const Slices& slices = rank.tracks[0].slices;
  std::optional<Phase> phase, holder;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (time < slices.start_ns[i] || time >= slices.end_ns(i)) continue;
    std::optional<Phase> own = rules.phase(slices.kind[i]);
    if (!own) continue;
    const bool compute = own != Phase::communication && own != Phase::evaluate && own != Phase::startup &&
                         own != Phase::checkpoint && own != Phase::other;
    if (compute && holder) own = holder;
    if (own == Phase::evaluate || own == Phase::startup || own == Phase::checkpoint) holder = own;
    phase = own;
  }
  if (phase) return *phase;
  return time < startup_end ? Phase::startup : Phase::other;
}

void random_slices(std::mt19937& random, TrackBuilder& main, std::int64_t start, std::int64_t end, int depth) {
  const char* categories[] = {"startup",   "iteration", "preprocess", "forward", "backward", "allreduce",
                              "optimizer", "evaluate",  "checkpoint", "layer",   "unknown"};
  std::int64_t time = start;
  while (time < end) {
    time += std::uniform_int_distribution<std::int64_t>(0, 8)(random);
    const std::int64_t length = std::uniform_int_distribution<std::int64_t>(0, 60)(random);
    if (time + length > end) return;
    const char* category = categories[random() % std::size(categories)];
    main.push(time, "x", trainer, category);
    if (depth < 4) random_slices(random, main, time, time + length, depth + 1);
    main.pop(time + length);
    time += length;
  }
}

TEST(Phases, OfRandomTracesAddUpToWallTimeAndAgreeWithTheNanosecondByNanosecondReference) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    TraceBuilder run;
    RankBuilder& builder = run.add_rank(0);
    builder.info().start_ns = std::uniform_int_distribution<std::int64_t>(-20, 20)(random);
    builder.info().end_ns = 400;
    random_slices(random, builder.add_main_thread(), 0, 420, 0);
    const Trace trace = run.finish();
    const Rank& rank = trace.ranks[0];
    const RankPhases phases = phases_of(trace, rank);

    EXPECT_EQ(std::accumulate(phases.total_ns.begin(), phases.total_ns.end(), std::int64_t{0}),
              rank.end_ns - rank.start_ns);
    std::int64_t cursor = rank.start_ns;
    for (const PhaseInterval& interval : phases.intervals) {
      ASSERT_EQ(interval.start_ns, cursor);
      ASSERT_GT(interval.end_ns, interval.start_ns);
      cursor = interval.end_ns;
    }
    ASSERT_EQ(cursor, rank.end_ns);

    const Slices& slices = rank.tracks[0].slices;
    PhaseTable rules(trace);
    std::int64_t startup_end = slices.size() > 0 ? slices.start_ns[0] : rank.start_ns;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (!rules.iteration(slices.kind[i])) continue;
      startup_end = slices.start_ns[i];
      break;
    }
    for (const PhaseInterval& interval : phases.intervals) {
      for (std::int64_t t = interval.start_ns; t < interval.end_ns; ++t) {
        ASSERT_EQ(phase_name(interval.phase), phase_name(phase_at(rules, rank, t, startup_end)))
            << "round " << round << " at " << t;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::analysis
