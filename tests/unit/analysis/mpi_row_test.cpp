// The row of MPI calls holds a thread's MPI slices, and nothing else, with their arguments.
#include "analysis/index/mpi_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;

TEST(MpiRow, HoldsTheMpiSlicesOfAThreadWithTheirArguments) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.push(0, "iteration", "paceline.trainer", "iteration");
  main.argument("payload", 7);
  main.push(10, "MPI_Allreduce", "mpi", "collective");
  main.argument("bytes", 4096);
  main.pop(20);
  main.pop(30);
  main.push(40, "MPI_Wait", "mpi", "wait");
  main.pop(50);
  const Trace trace = run.finish();
  const MpiRow row = mpi_row(trace, trace.ranks[0].tracks[0]);
  EXPECT_EQ(row.track.kind, TrackKind::mpi);
  EXPECT_THAT(row.track.slices.start_ns, ElementsAre(10, 40));
  EXPECT_THAT(row.track.slices.depth, ElementsAre(0, 0));
  EXPECT_THAT(row.origin, ElementsAre(1U, 2U));
  EXPECT_EQ(row.track.depths, 1);
  EXPECT_EQ(row.track.slices.number(0, trace.names.find("bytes")), 4096.0);
  EXPECT_EQ(row.track.slices.number(0, trace.names.find("payload")), std::nullopt);
}

TEST(MpiRow, IsEmptyForAThreadWithoutMpi) {
  TraceBuilder run;
  run.add_rank(0).add_main_thread().add_slice(0, 5, "work");
  const Trace trace = run.finish();
  EXPECT_EQ(mpi_row(trace, trace.ranks[0].tracks[0]).track.slices.size(), 0U);
}

}  // namespace
}  // namespace paceline::analysis
