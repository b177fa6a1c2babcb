// SPDX-License-Identifier: Apache-2.0
// Whether the MPI library accepts pointers to GPU memory.
#pragma once

#include <string>

namespace paceline::train {

struct CudaAwareness {
  bool yes = false;
  std::string why_not;  // in a few words; empty if it does
};

// Asks the library at run time (Open MPI's MPIX_Query_cuda_support, if mpi-ext.h has it). Debian's Open MPI is built
// without CUDA. MPI must be initialised.
CudaAwareness cuda_awareness();

}  // namespace paceline::train
