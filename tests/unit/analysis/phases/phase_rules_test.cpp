// SPDX-License-Identifier: Apache-2.0
// Which slice belongs to which phase, by the built-in rules.
#include "analysis/phases/phase_rules.h"

#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

TEST(PatternMatch, StarsStandForAnyTextAndCaseDoesNotMatter) {
  EXPECT_TRUE(matches("", "anything"));
  EXPECT_TRUE(matches("forward", "Forward"));
  EXPECT_FALSE(matches("forward", "forward2"));
  EXPECT_TRUE(matches("forward*", "forward"));
  EXPECT_TRUE(matches("*ncclKernel*", "void ncclKernel_AllReduce(x)"));
  EXPECT_TRUE(matches("data*load*", "DataLoader"));
  EXPECT_TRUE(matches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches("a*b*c", "aXbYbZ"));
  EXPECT_FALSE(matches("a", ""));
  EXPECT_TRUE(matches("*", ""));
}

struct Named {
  const char *domain, *category, *name;
  std::optional<Phase> phase;
};

TEST(PhaseRules, GiveEachKnownSliceItsPhase) {
  const Named table[] = {
      {"paceline.trainer", "preprocess", "preprocess", Phase::preprocess},
      {"paceline.trainer", "forward", "forward", Phase::forward},
      {"paceline.trainer", "backward", "backward", Phase::backward},
      {"paceline.trainer", "allreduce", "allreduce", Phase::communication},
      {"paceline.trainer", "optimizer", "optimizer", Phase::optimizer},
      {"paceline.trainer", "evaluate", "evaluate", Phase::evaluate},
      {"paceline.trainer", "checkpoint", "checkpoint", Phase::checkpoint},
      {"paceline.trainer", "startup", "startup", Phase::startup},
      {"paceline.trainer", "layer", "layer1.0.conv1", std::nullopt},
      {"paceline.trainer", "layer", "forward", std::nullopt},
      {"paceline.trainer", "iteration", "iteration", std::nullopt},
      {"mpi", "management", "MPI_Init", Phase::startup},
      {"mpi", "management", "MPI_Init_thread", Phase::startup},
      {"mpi", "management", "MPI_Finalize", Phase::other},
      {"mpi", "management", "MPI_Comm_dup", std::nullopt},
      {"mpi", "collective", "MPI_Allreduce", Phase::communication},
      {"mpi", "point-to-point", "MPI_Send", Phase::communication},
      {"mpi", "wait", "MPI_Waitall", Phase::communication},
      {"mpi", "file", "MPI_File_write", std::nullopt},
      {"NCCL", "", "ncclAllReduce", Phase::communication},
      {"NCCL", "", "ncclCommInitRank", Phase::startup},
      {"", "", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", Phase::communication},
      {"", "", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Phase::preprocess},
      {"", "", "Optimizer.step#SGD.step", Phase::optimizer},
      {"", "", "Optimizer.zero_grad#SGD.zero_grad", Phase::optimizer},
      {"", "", "optimizer.step", Phase::optimizer},
      {"torch", "user_annotation", "## backward ##", Phase::backward},
      {"", "", "DistributedDataParallel.forward", Phase::forward},
      {"", "", "forward", Phase::forward},
      {"", "", "Backward pass", Phase::backward},
      {"", "", "validation", Phase::evaluate},
      {"my program", "", "solve", std::nullopt},
  };
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  std::int64_t time = 0;
  for (const Named& row : table) {
    main.add_slice(time, time + 1, row.name, row.domain, row.category);
    ++time;
  }
  const Trace trace = run.finish();
  const Rank& rank = trace.ranks[0];
  PhaseTable rules(trace);
  std::size_t i = 0;
  for (const Named& row : table) {
    const Slices& slices = rank.tracks[0].slices;
    EXPECT_EQ(rules.phase(slices.kind[i]), row.phase) << row.domain << " / " << row.name;
    ++i;
  }
}

TEST(PhaseRules, NameEachPhaseAsInJson) {
  const char* expected[] = {"startup",  "preprocess", "forward", "backward", "optimizer", "communication",
                            "evaluate", "checkpoint", "copy",    "launch",   "idle",      "other"};
  for (std::size_t i = 0; i < phase_count; ++i) EXPECT_EQ(phase_name(static_cast<Phase>(i)), expected[i]);
}

}  // namespace
}  // namespace paceline::analysis
