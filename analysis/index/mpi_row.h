// A thread's MPI calls as a row of their own, for pictures.
#pragma once

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// A track of kind mpi, label "MPI", with copies of the thread's slices of domain "mpi", their arguments and, for each,
// its index in the thread's own track (`origin`). Depths count MPI calls only (a call may run inside a callback of
// another). Empty where the thread made no MPI call. Cost: linear in the thread's slices.
struct MpiRow {
  Track track;
  std::vector<std::uint32_t> origin;
};
MpiRow mpi_row(const Trace& trace, const Track& thread);

}  // namespace paceline::analysis
