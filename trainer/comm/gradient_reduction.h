// Gradients averaged over the ranks: as a whole, in parts, or beside the computation. All ranks make the same calls in
// the same order.
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

class GradientReduction {
 public:
  virtual ~GradientReduction() = default;

  // Where the parameters lie in the gradient: their first positions in ascending order, then the gradient's length. An
  // algorithm that works parameter by parameter (naive) uses these positions.
  virtual void set_segments(std::vector<std::size_t>) {}

  // Replaces the values by their mean over the ranks, with the same bits on every rank. In fp32 the mean is the sum
  // followed by one division. In a 16-bit type each rank divides first, so that the sum stays in range, and rounds to
  // that type; each addition rounds too.
  virtual void allreduce_mean(std::span<float> values) = 0;

  // Averages positions [first, first + count) of the gradient in place.
  virtual void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) = 0;

  // Adds the values of all ranks up on `root` and leaves those of the other ranks as they were. In a 16-bit type each
  // rank divides by the number of ranks first and the root multiplies the sum by it, so that the sum stays in range.
  virtual void reduce_sum(std::span<float> values, int root) = 0;

  // The sharded optimizer. Each rank owns a part of every flat buffer of `values` values, and the parts of all ranks
  // cover it. reduce_scatter_mean() replaces this rank's part of the gradient by the mean over the ranks and leaves the
  // other positions undefined. all_gather() copies each rank's part of the weights to all ranks, in fp32. Collective
  // calls; only if shards().
  virtual bool shards() const { return false; }
  virtual Slice own_shard(std::size_t values) const { return {0, values}; }
  virtual void reduce_scatter_mean(std::span<float>) {}
  virtual void all_gather(std::span<float>) {}

  // Bytes that one rank sends for a mean over `values` values; profiles and bandwidths use this number.
  virtual std::size_t payload_bytes(std::size_t values) const { return values * sizeof(float); }

  // Begins the mean of these parts of a gradient in GPU memory and returns at once. The gradients must have been
  // computed, or, after set_stream(), be computed by the work that is in that stream now. Returns null for a gradient
  // in host memory; call allreduce_gradient() then.
  virtual std::unique_ptr<Transfer> begin_mean(std::span<float>, std::span<const Slice>) { return nullptr; }

  // Whether begin_mean() puts all of its work into a stream of the device, so that the host makes no MPI call. join()
  // then waits for every mean that was begun: the model's stream waits if set_stream() was called, else the caller.
  virtual bool queues() const { return false; }
  virtual void join() {}

  // The stream that the model computes with, a cudaStream_t. Set it if the model hands over gradients before they are
  // computed and reads means before they have arrived.
  virtual void set_stream(void*) {}

  // Allocates zeroed memory for a gradient where the model computes, aligned to at least 64 bytes. The reduction must
  // outlive it.
  virtual std::shared_ptr<float> gradient_memory(std::size_t values) const = 0;

  // Whether gradients must lie in gradient_memory(), because the communication library has registered it.
  virtual bool wants_gradients() const { return false; }

  // Copies between host memory and gradient_memory(), in either direction.
  virtual void copy(std::span<const float> from, std::span<float> to) const = 0;
};

}  // namespace paceline::train
