// SPDX-License-Identifier: Apache-2.0
// Copies between GPU memory and the host's, which wait for the GPU.
#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "trainer/backend/cuda/runtime.h"

namespace paceline::train::cuda {

// The values, wherever they are, in host memory.
template <class T>
std::vector<std::remove_const_t<T>> on_host(std::span<T> values) {
  std::vector<std::remove_const_t<T>> copy(values.size());
  PACELINE_CHECK_CUDA(cudaDeviceSynchronize());
  PACELINE_CHECK_CUDA(cudaMemcpy(copy.data(), values.data(), values.size_bytes(), cudaMemcpyDefault));
  return copy;
}

template <class T>
std::vector<T> on_host(const Buffer& buffer) {
  return on_host(std::span<const T>(buffer.data<T>(), buffer.bytes() / sizeof(T)));
}

// Copies host values to a place of the same length.
inline void put(std::span<const float> values, std::span<float> place) {
  PACELINE_CHECK_CUDA(cudaMemcpy(place.data(), values.data(), values.size_bytes(), cudaMemcpyDefault));
  PACELINE_CHECK_CUDA(cudaDeviceSynchronize());  // a copy from pageable memory may return before its end
}

}  // namespace paceline::train::cuda
