// SPDX-License-Identifier: Apache-2.0
// The ranks of a job as a grid of pipeline stages and replicas. Rank r has stage r ÷ replicas and replica r mod
// replicas: the ranks of one stage, which average whole gradients, are neighbours.
#pragma once

#include <mpi.h>

#include <string>

#include "trainer/comm/communicator.h"

namespace paceline::train {

struct PipelineOptions {
  int stages = 1;
  int microbatches = 1;            // of each replica's batch
  std::string schedule = "gpipe";  // one of schedule_names()
  std::string split = "measured";  // or operations, or names of layers, separated by commas
  bool used() const { return stages > 1 || microbatches > 1; }
};

class Grid {
 public:
  // A collective call over `world`, whose size is a multiple of `stages`. communicator, dtype: of the mean of a stage's
  // gradients over the replicas. Throws Error (usage) as make_host_communicator() does.
  Grid(MPI_Comm world, int stages, const std::string& communicator, const std::string& dtype);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  int stages = 1, replicas = 1;
  int stage = 0, replica = 0;      // of this rank
  MPI_Comm chain = MPI_COMM_NULL;  // the stages of this rank's replica, in order
  Communicator of_stage;           // the ranks with this rank's stage, in order of their replicas

  int rank_of(int of_stage, int of_replica) const { return of_stage * replicas + of_replica; }
};

}  // namespace paceline::train
