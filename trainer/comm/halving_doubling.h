// SPDX-License-Identifier: Apache-2.0
// Recursive halving and doubling over the ranks of any communicator, and its schedule.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "trainer/comm/allreduce.h"

namespace paceline::train {

// One step of a rank. Ranges are in units of the whole vector: [first, last) of HalvingDoublingSchedule::units; an
// empty range means no message.
struct HalvingDoublingStep {
  struct Range {
    int first = 0, last = 0;
    bool empty() const { return first == last; }
    bool operator==(const Range&) const = default;
  };
  int partner;
  Range send, receive;
  bool add;  // add the received values to the own ones; otherwise replace them

  bool operator==(const HalvingDoublingStep&) const = default;
};

struct HalvingDoublingSchedule {
  int units = 1;  // ranks of the largest block
  std::vector<HalvingDoublingStep> reduction, distribution;
  HalvingDoublingStep::Range
      sums;  // where this rank has the complete sums between the two phases; empty in smaller blocks
};

// The steps of `rank` out of `size`. For a power of two: in step k of the reduce-scatter, partners are 2^k apart and
// exchange halves of their remaining range; the rank whose bit k is 0 keeps the first half; the allgather takes the
// same steps backwards (Rabenseifner & Träff, More efficient reduction algorithms for non-power-of-two number of
// processors, 2004; Goyal et al., 1706.02677, section 4). Other sizes are cut into blocks of powers of two, the largest
// first. Each block does its reduce-scatter. Then, beginning with the smallest block, each block sends its sums to the
// next larger one, whose ranks add them to their own. Before the allgather the results go back the same way.
HalvingDoublingSchedule halving_doubling_schedule(int rank, int size);

// `comm` must outlive the result. one_host: all ranks of `comm` are on one host, so they use shared memory.
std::unique_ptr<Allreduce> make_halving_doubling_over(MPI_Comm comm, bool one_host = false);

}  // namespace paceline::train
