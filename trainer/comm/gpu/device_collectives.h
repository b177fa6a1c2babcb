// SPDX-License-Identifier: Apache-2.0
// Collective calls whose values may lie in GPU memory: they go through host memory and MPI.
#pragma once

#include <memory>
#include <utility>

#include "trainer/comm/collectives.h"
#include "trainer/comm/gpu/model_memory.h"

namespace paceline::train::nccl {

class DeviceCollectives : public Collectives {
 public:
  DeviceCollectives(std::unique_ptr<Collectives> host, std::shared_ptr<const ModelMemory> memory)
      : host_(std::move(host)), memory_(std::move(memory)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int local_rank() const override { return host_->local_rank(); }
  int local_size() const override { return host_->local_size(); }

  void wait_for_all() override { host_->wait_for_all(); }
  void broadcast(std::span<float> values, int root) override {
    memory_->in_host_memory(values, [&](std::span<float> numbers) { host_->broadcast(numbers, root); });
  }
  void broadcast(std::span<std::uint64_t> values, int root) override { host_->broadcast(values, root); }
  void broadcast(std::span<std::byte> values, int root) override { host_->broadcast(values, root); }
  void allreduce_sum(std::span<double> values) override { host_->allreduce_sum(values); }
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void send(std::span<const std::byte> bytes, int to) override;
  void receive(std::span<std::byte> bytes, int from) override;
  std::optional<int> sender() override { return host_->sender(); }

 private:
  const std::unique_ptr<Collectives> host_;
  const std::shared_ptr<const ModelMemory> memory_;
};

}  // namespace paceline::train::nccl
