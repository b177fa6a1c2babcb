// SPDX-License-Identifier: Apache-2.0
// Collective calls on host memory, over MPI.
#pragma once

#include <memory>

#include "trainer/comm/collectives.h"
#include "trainer/comm/ranks.h"

namespace paceline::train {

// A failed MPI call ends the job: MPI's default handler prints the reason and the rank.
class HostCollectives : public Collectives {
 public:
  explicit HostCollectives(std::shared_ptr<const Ranks> ranks) : ranks_(std::move(ranks)) {}

  int rank() const override { return ranks_->rank; }
  int size() const override { return ranks_->size; }
  int local_rank() const override { return ranks_->local_rank; }
  int local_size() const override { return ranks_->local_size; }

  void wait_for_all() override;
  void broadcast(std::span<float> values, int root) override;
  void broadcast(std::span<std::uint64_t> values, int root) override;
  void broadcast(std::span<std::byte> values, int root) override;
  void allreduce_sum(std::span<double> values) override;
  void allgather(std::span<const std::byte> own, std::span<std::byte> all) override;
  void send(std::span<const std::byte> bytes, int to) override;
  void receive(std::span<std::byte> bytes, int from) override;
  std::optional<int> sender() override;

 private:
  const std::shared_ptr<const Ranks> ranks_;
};

}  // namespace paceline::train
