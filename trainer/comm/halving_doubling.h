// Recursive halving and doubling over the ranks of any communicator, and its schedule.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "trainer/comm/allreduce.h"

namespace paceline::train {

// One step of a rank. Ranges are in units of the whole vector: [first, last) of HalvingDoublingSchedule::units; an
// empty one is no message.
struct HalvingDoublingStep {
  struct Range {
    int first = 0, last = 0;
    bool empty() const { return first == last; }
    bool operator==(const Range&) const = default;
  };
  int partner;
  Range send, receive;
  bool add;  // what is received to the own values; otherwise in their place

  bool operator==(const HalvingDoublingStep&) const = default;
};

struct HalvingDoublingSchedule {
  int units = 1;  // ranks of the largest block
  std::vector<HalvingDoublingStep> reduction, distribution;
  HalvingDoublingStep::Range sums;  // what this rank has the complete sums of between the two; empty in smaller blocks
};

// The steps of `rank` out of `size`. For a power of two: in step k of the reduce-scatter partners are 2^k apart and
// swap halves of what they still have, the rank whose bit k is clear keeping the first; the allgather retraces the
// steps (Rabenseifner & Träff, More efficient reduction algorithms for non-power-of-two number of processors, 2004;
// Goyal et al., 1706.02677, section 4). Other sizes are cut into blocks of powers of two, the largest first; each
// does its reduce-scatter; then, from the smallest block on, each hands its sums over to the next larger one, whose
// ranks add the part that they have; before the allgather the results come back the same way.
HalvingDoublingSchedule halving_doubling_schedule(int rank, int size);

// `comm` must outlive what is made. one_host: all ranks of `comm` are on one; they go through shared memory then.
std::unique_ptr<Allreduce> make_halving_doubling_over(MPI_Comm comm, bool one_host = false);

}  // namespace paceline::train
