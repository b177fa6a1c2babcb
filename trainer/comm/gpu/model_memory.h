// SPDX-License-Identifier: Apache-2.0
// Values in the GPU memory that the model computes in, for calls that need them in host memory.
#pragma once

#include <span>
#include <vector>

#include "trainer/backend/cuda/runtime.h"

namespace paceline::train::nccl {

struct ModelMemory {
  cudaStream_t stream = nullptr;  // of the model; see DeviceTransfers::set_stream()

  // Copies between host memory and GPU memory after the work in the model's stream.
  void copy(std::span<const float> from, std::span<float> to) const {
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(stream));
    PACELINE_CHECK_CUDA(cudaMemcpy(to.data(), from.data(), from.size_bytes(), cudaMemcpyDefault));
    PACELINE_CHECK_CUDA(cudaStreamSynchronize(nullptr));  // a copy from pageable memory may return before its end
  }

  // Calls work(values) on host memory: in place if the values are there, else on a copy, which is copied back. For rare
  // calls.
  template <typename Work>
  void in_host_memory(std::span<float> values, Work work) const {
    if (values.empty() || !cuda::on_device(values.data())) return work(values);
    std::vector<float> numbers(values.size());
    copy(values, numbers);
    work(std::span(numbers));
    copy(numbers, values);
  }
};

}  // namespace paceline::train::nccl
