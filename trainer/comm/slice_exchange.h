// SPDX-License-Identifier: Apache-2.0
// Allreduce by slices, the part that ChainerMN's hierarchical, two_dimensional and non_cuda_aware share: each rank sums
// one slice of the values.
#pragma once

#include <vector>

#include "trainer/comm/allreduce.h"

namespace paceline::train {

class SliceExchange {
 public:
  // Each rank of `comm` gets every rank's copy of its own slice (an Alltoall), adds them up in the order of the ranks,
  // divides, and gives the result to all ranks (another Alltoall, which serves as allgather). ChainerMN pads the values
  // to equal slices; here the slices differ by at most one value.
  void reduce(MPI_Comm comm, const Values& values);

 private:
  std::vector<std::byte> copies_;
};

// Counts and first positions of the slices of `count` values, in the form that MPI calls take.
struct SliceTable {
  SliceTable(std::size_t count, int parts);
  std::vector<int> counts, firsts;
};

}  // namespace paceline::train
