// SPDX-License-Identifier: Apache-2.0
// The allreduce by slices of comm/slice_exchange.h, on GPUs.
#pragma once

#include "trainer/backend/cuda/runtime.h"
#include "trainer/comm/gpu/allreduce.h"

namespace paceline::train::nccl {

class SliceExchange {
 public:
  // Each rank of `peers` gets every rank's copy of its own slice, adds them up in the order of the ranks, divides, and
  // gives the result to all ranks.
  void reduce(NcclComm& peers, const Values& values, cudaStream_t stream);

 private:
  cuda::Buffer copies_;
};

// Makes the buffer at least `bytes` long. Waits for the work in the stream before the buffer grows.
void grow(cuda::Buffer& buffer, cuda::Buffer::Kind kind, std::size_t bytes, cudaStream_t stream);

}  // namespace paceline::train::nccl
