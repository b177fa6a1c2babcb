// SPDX-License-Identifier: Apache-2.0
// Messages and collective calls on values in memory, apart from the gradient's mean. All ranks make the same calls in
// the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace paceline::train {

class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the ranks of this host
  virtual int local_size() const = 0;  // ranks of this host

  // Returns when all ranks have called it. Sleeps meanwhile, so that the waiting thread leaves its core to a thread
  // that computes. Returns up to 0.2 ms late.
  virtual void wait_for_all() = 0;

  // Replaces the values by those of `root`.
  virtual void broadcast(std::span<float> values, int root) = 0;
  virtual void broadcast(std::span<std::uint64_t> values, int root) = 0;
  virtual void broadcast(std::span<std::byte> values, int root) = 0;

  // Replaces the values by their sum over the ranks.
  virtual void allreduce_sum(std::span<double> values) = 0;

  // Gathers every rank's bytes in `all`, in the order of the ranks. `own` has the same length on every rank, and `all`
  // has that length times the number of ranks.
  virtual void allgather(std::span<const std::byte> own, std::span<std::byte> all) = 0;

  // Messages between two ranks. send() may wait until the other rank receives; receive() sleeps until a message of that
  // length arrives. sender() returns a rank whose message has arrived and was not received; nothing if there is none.
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;
  virtual std::optional<int> sender() = 0;
};

}  // namespace paceline::train
