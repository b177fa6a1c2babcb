// The communicators on GPUs.
#pragma once

#include <memory>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/comm/gpu/options.h"
#include "trainer/comm/ranks.h"

namespace paceline::train::nccl {

// The communicator of that name over the ranks, for gradients in the memory of the current device, which is the rank's
// from now on; what lies in host memory goes through MPI. It has a stream of its own, called `communication`.
//
// pure_nccl, single_node, hierarchical, two_dimensional: NCCL alone. non_cuda_aware: NCCL within hosts, MPI between
// them through pinned host memory. mpi, naive, flat: the MPI library on the GPU's memory where it is CUDA-aware and
// numbers are fp32, else, like all other names, the algorithm of comm/ on pinned host memory.
//
// A collective call. Throws Error: for another name or type, where two ranks of a communicator of NCCL share a GPU,
// where a rank is missing for options.timeout_s; on all ranks the same.
Communicator make_device_communicator(const std::string& name, const Options& options, std::unique_ptr<Ranks> ranks);

}  // namespace paceline::train::nccl
