// SPDX-License-Identifier: Apache-2.0
// Gradients averaged over the ranks: as a whole, in parts, or beside the computation. All ranks make the same calls in
// the same order. What only some reductions can do is an interface of its own, which GradientReduction hands out.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "trainer/core/slice.h"

namespace paceline::train {

// A mean over the ranks that is computed while the host goes on.
class Transfer {
 public:
  virtual ~Transfer() = default;

  // Sleeps until the gradients have been computed.
  virtual void wait_until_ready() = 0;

  // Does the host's part of the work and returns when the mean has replaced the gradients. Call it once for each
  // transfer, in the order in which they began. Throws Error if the communication failed or another rank is missing for
  // too long.
  virtual void finish() = 0;
};

// Means of gradients in GPU memory, computed beside the work of the host.
class DeviceTransfers {
 public:
  virtual ~DeviceTransfers() = default;

  // The stream that the model computes with, a cudaStream_t. Set it if the model hands over gradients before they are
  // computed and reads means before they have arrived.
  virtual void set_stream(void* stream) = 0;

  // Begins the mean of these parts of a gradient and returns at once. The gradients must have been computed, or, after
  // set_stream(), be computed by the work that is in that stream now. Returns null for a gradient in host memory; call
  // allreduce_gradient() then.
  virtual std::unique_ptr<Transfer> begin_mean(std::span<float> gradient, std::span<const Slice> parts) = 0;

  // Whether begin_mean() puts all of its work into a stream of the device, so that the host makes no MPI call. join()
  // then waits for every mean that was begun: the model's stream waits if set_stream() was called, else the caller.
  virtual bool queues() const = 0;
  virtual void join() = 0;
};

// The two halves of a mean, for the sharded optimizer. Each rank owns a part of every flat buffer of `values` values,
// and the parts of all ranks cover it.
class ShardedReduction {
 public:
  virtual ~ShardedReduction() = default;

  virtual Slice own_shard(std::size_t values) const = 0;

  // Replaces this rank's part of the gradient by the mean over the ranks and leaves the other positions undefined.
  virtual void reduce_scatter_mean(std::span<float> gradient) = 0;

  // Copies each rank's part of the weights to all ranks, in fp32.
  virtual void all_gather(std::span<float> weights) = 0;
};

// The memory that gradients of the model lie in.
class GradientMemory {
 public:
  virtual ~GradientMemory() = default;

  // Zeroed memory where the model computes, aligned to at least 64 bytes. The reduction must outlive it.
  virtual std::shared_ptr<float> allocate(std::size_t values) const = 0;

  // Whether gradients must lie in such memory, because the communication library has registered it.
  virtual bool required() const = 0;

  // Copies between host memory and such memory, in either direction.
  virtual void copy(std::span<const float> from, std::span<float> to) const = 0;
};

class GradientReduction {
 public:
  virtual ~GradientReduction() = default;

  // Where the parameters lie in the gradient: their first positions in ascending order, then the gradient's length. An
  // algorithm that works parameter by parameter (naive) uses these positions.
  virtual void set_segments(std::vector<std::size_t> offsets) = 0;

  // Replaces the values by their mean over the ranks, with the same bits on every rank. In fp32 the mean is the sum
  // followed by one division. In a 16-bit type each rank divides first, so that the sum stays in range, and rounds to
  // that type; each addition rounds too.
  virtual void allreduce_mean(std::span<float> values) = 0;

  // Averages positions [first, first + count) of the gradient in place.
  virtual void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) = 0;

  // Adds the values of all ranks up on `root` and leaves those of the other ranks as they were. In a 16-bit type each
  // rank divides by the number of ranks first and the root multiplies the sum by it, so that the sum stays in range.
  virtual void reduce_sum(std::span<float> values, int root) = 0;

  // Bytes that one rank sends for a mean over `values` values; profiles and bandwidths use this number.
  virtual std::size_t payload_bytes(std::size_t values) const = 0;

  virtual const GradientMemory& memory() const = 0;
  virtual ShardedReduction* sharded() = 0;  // null: the algorithm has no reduce-scatter
  virtual DeviceTransfers* device() = 0;    // null: gradients lie in host memory alone

  // Whether means are computed in a stream of a device, without any MPI call of the host.
  bool queues() {
    const DeviceTransfers* const transfers = device();
    return transfers != nullptr && transfers->queues();
  }
};

}  // namespace paceline::train
