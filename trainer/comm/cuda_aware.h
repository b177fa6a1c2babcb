// Whether the MPI library takes pointers to a GPU's memory.
#pragma once

#include <string>

namespace paceline::train {

struct CudaAwareness {
  bool yes = false;
  std::string why_not;  // in a few words; empty where it does
};

// As the library says at run time (Open MPI's MPIX_Query_cuda_support, where mpi-ext.h has it). Debian's Open MPI is
// built without. MPI must be initialised.
CudaAwareness cuda_awareness();

}  // namespace paceline::train
