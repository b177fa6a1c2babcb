// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/grid.h"

#include <stdexcept>
#include <utility>

namespace paceline::train {

Grid::Grid(MPI_Comm world, int stage_count, const std::string& communicator, const std::string& dtype)
    : stages(stage_count) {
  int rank = 0, size = 1;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  if (size % stages != 0) throw std::invalid_argument("the ranks cannot be divided into these stages");
  replicas = size / stages;
  stage = rank / replicas;
  replica = rank % replicas;
  MPI_Comm_split(world, replica, stage, &chain);
  MPI_Comm same_stage = MPI_COMM_NULL;
  MPI_Comm_split(world, stage, replica, &same_stage);
  auto ranks = std::make_unique<Ranks>(same_stage);  // has copies of its own
  MPI_Comm_free(&same_stage);
  of_stage = make_host_communicator(communicator, dtype, std::move(ranks));
}

Grid::~Grid() { MPI_Comm_free(&chain); }

}  // namespace paceline::train
