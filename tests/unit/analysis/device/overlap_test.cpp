// SPDX-License-Identifier: Apache-2.0
// Communication that runs beside the main thread's compute is hidden; the rest of it is not.
#include "analysis/device/overlap.h"

#include <gtest/gtest.h>

#include "analysis/trace/builder.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

TEST(Overlap, IsTheCommonTimeOfCommunicationAndCompute) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  main.add_slice(0, 50, "forward");
  main.add_slice(50, 100, "backward");
  main.add_slice(100, 160, "preprocess");
  TrackBuilder& thread = rank.add_track(TrackKind::thread, "communication", 2);
  thread.add_slice(80, 120, "allreduce");
  thread.add_slice(85, 90, "MPI_Allreduce", "mpi", "collective");  // inside: not counted twice
  thread.add_slice(130, 140, "allreduce");
  const Trace trace = run.finish();
  const auto overlap = overlap_of(trace, trace.ranks[0], phases_of(trace, trace.ranks[0]));
  ASSERT_TRUE(overlap.has_value());
  EXPECT_EQ(overlap->communication_ns, 50);
  EXPECT_EQ(overlap->hidden_ns, 20);
}

TEST(Overlap, IsNotReportedWhereNothingCommunicatesBesideTheMainThread) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.add_main_thread().add_slice(0, 50, "MPI_Allreduce", "mpi", "collective");
  rank.add_track(TrackKind::thread, "loader", 2).add_slice(0, 10, "preprocess");
  const Trace trace = run.finish();
  EXPECT_FALSE(overlap_of(trace, trace.ranks[0], phases_of(trace, trace.ranks[0])).has_value());
}

}  // namespace
}  // namespace paceline::analysis
