// SPDX-License-Identifier: Apache-2.0
// Gradients in host memory, averaged by one allreduce algorithm: casts to the type that travels, divides, and splits
// what is longer than an MPI call can count.
#pragma once

#include <memory>

#include "trainer/comm/allreduce.h"
#include "trainer/comm/gradient_reduction.h"
#include "trainer/comm/ranks.h"
#include "trainer/nn/memory.h"

namespace paceline::train {

// A failed MPI call ends the job: MPI's default handler prints the reason and the rank.
class HostReduction : public GradientReduction, public GradientMemory, public ShardedReduction {
 public:
  // ordered: the ranks in the order in which the algorithm numbers them; null: in the job's order.
  HostReduction(std::shared_ptr<const Ranks> ranks, std::unique_ptr<Element> element,
                std::unique_ptr<Allreduce> allreduce, std::unique_ptr<Ranks> ordered = nullptr);

  void set_segments(std::vector<std::size_t> offsets) override { segments_ = std::move(offsets); }
  void allreduce_mean(std::span<float> values) override;
  void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) override;
  void reduce_sum(std::span<float> values, int root) override;
  std::size_t payload_bytes(std::size_t values) const override { return values * element_->bytes(); }

  ShardedReduction* sharded() override { return allreduce_->has_halves() ? this : nullptr; }
  Slice own_shard(std::size_t values) const override { return allreduce_->own_slice(values); }
  void reduce_scatter_mean(std::span<float> values) override;
  void all_gather(std::span<float> values) override;

  const GradientMemory& memory() const override { return *this; }
  std::shared_ptr<float> allocate(std::size_t values) const override { return host_memory().allocate(values); }
  bool required() const override { return false; }
  void copy(std::span<const float> from, std::span<float> to) const override { host_memory().copy(from, to); }

  DeviceTransfers* device() override { return nullptr; }

 private:
  // parts: lengths that are reduced one after the other; they add up to the number of values.
  void mean(std::span<float> values, const std::vector<std::size_t>& parts);
  std::byte* narrowed(std::span<const float> values);
  bool casts() const { return element_->bytes() != sizeof(float); }
  void reduce(Slice slice, std::byte* data, float divisor);

  const std::shared_ptr<const Ranks> ranks_;
  const std::unique_ptr<Ranks> ordered_;
  const std::unique_ptr<Element> element_;
  const Element f32_{"f32"};  // of weights
  const std::unique_ptr<Allreduce> allreduce_;
  std::vector<std::size_t> segments_;
  std::vector<std::byte> narrow_;  // the values as 16-bit numbers
};

}  // namespace paceline::train
