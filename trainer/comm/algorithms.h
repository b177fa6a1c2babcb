// SPDX-License-Identifier: Apache-2.0
// The table of the allreduce algorithms on host memory. Each has a file of its name, which defines make_NAME() and
// names its source.
#pragma once

#include <memory>
#include <string>

#include "trainer/comm/allreduce.h"
#include "trainer/comm/ranks.h"

// One row for each algorithm: its name, and what --help prints about it.
#define PACELINE_ALGORITHMS(ROW)                                                             \
  ROW(mpi, "the MPI library's allreduce over the whole gradient, in place")                  \
  ROW(naive, "the MPI library's allreduce, once per parameter")                              \
  ROW(flat, "packed into one buffer, the MPI library's allreduce, unpacked")                 \
  ROW(hierarchical, "sum in each host, leaders exchange slices, broadcast in each host")     \
  ROW(two_dimensional, "slices summed in each host, then between ranks of equal local rank") \
  ROW(single_node, "the MPI library's allreduce; an error on more than one host")            \
  ROW(non_cuda_aware, "hierarchical through staging buffers (on CPUs: through copies)")      \
  ROW(ring, "reduce-scatter and allgather around a ring, pipelined")                         \
  ROW(halving_doubling, "recursive halving and doubling, binary blocks")                     \
  ROW(three_phase, "sum in each host, halving and doubling between leaders, broadcast")

namespace paceline::train {

// Makes the algorithm of that name, over all of `ranks`, which must outlive it. Throws Error (usage) for an unknown
// name.
std::unique_ptr<Allreduce> make_allreduce(const std::string& name, const Ranks& ranks);

// make_NAME() of each row. Throws Error (usage) if the ranks' hosts do not suit the algorithm.
#define PACELINE_ROW(name, summary) std::unique_ptr<Allreduce> make_##name(const Ranks& ranks);
PACELINE_ALGORITHMS(PACELINE_ROW)
#undef PACELINE_ROW

}  // namespace paceline::train
