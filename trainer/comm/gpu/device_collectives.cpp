// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/gpu/device_collectives.h"

#include <vector>

namespace paceline::train::nccl {

void DeviceCollectives::allgather(std::span<const std::byte> own, std::span<std::byte> all) {
  if (own.empty() || !cuda::on_device(own.data())) return host_->allgather(own, all);
  std::vector<std::byte> numbers(own.size());
  PACELINE_CHECK_CUDA(cudaMemcpy(numbers.data(), own.data(), own.size(), cudaMemcpyDefault));
  host_->allgather(numbers, all);
}

void DeviceCollectives::send(std::span<const std::byte> bytes, int to) {
  if (bytes.empty() || !cuda::on_device(bytes.data())) return host_->send(bytes, to);
  std::vector<std::byte> numbers(bytes.size());
  PACELINE_CHECK_CUDA(cudaMemcpy(numbers.data(), bytes.data(), bytes.size(), cudaMemcpyDefault));
  host_->send(numbers, to);
}

void DeviceCollectives::receive(std::span<std::byte> bytes, int from) {
  if (bytes.empty() || !cuda::on_device(bytes.data())) return host_->receive(bytes, from);
  std::vector<std::byte> numbers(bytes.size());
  host_->receive(numbers, from);
  PACELINE_CHECK_CUDA(cudaMemcpy(bytes.data(), numbers.data(), bytes.size(), cudaMemcpyDefault));
  PACELINE_CHECK_CUDA(cudaStreamSynchronize(nullptr));  // a copy from pageable memory may return before its end
}

}  // namespace paceline::train::nccl
