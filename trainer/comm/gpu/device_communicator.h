// SPDX-License-Identifier: Apache-2.0
// Communicators for gradients in GPU memory.
#pragma once

#include <memory>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl_options.h"
#include "trainer/comm/ranks.h"

namespace paceline::train::nccl {

// Makes the communicator of that name over the ranks, for gradients in the memory of the current device. Values in host
// memory go through MPI. It has a stream of its own, called `communication`.
//
// pure_nccl, single_node, hierarchical and two_dimensional use NCCL alone. non_cuda_aware uses NCCL within hosts, and
// MPI on pinned host memory between them. mpi, naive and flat use the MPI library on GPU memory if it is CUDA-aware and
// the type is fp32. In all other cases the algorithm of comm/ works on pinned host memory.
//
// A collective call. Throws the same Error on all ranks for an unknown name or type, if two ranks of an NCCL
// communicator share a GPU, and if a rank is missing for options.timeout_s.
Communicator make_device_communicator(const std::string& name, const Options& options, std::unique_ptr<Ranks> ranks);

}  // namespace paceline::train::nccl
