// Where a model's flat buffers lie, and work on whole buffers there: what is done in every step to buffers as large as
// the network must be done by the device that holds them. The host can read and write them all the same.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace paceline::train {

class Memory {
 public:
  virtual ~Memory() = default;

  // Values of zero, 64-byte aligned. Throws std::bad_alloc, or Error of the device.
  using Values = std::shared_ptr<float>;
  virtual Values allocate(std::size_t count) = 0;

  // Of one length, in buffers of this memory. Done when the call returns; within gradients_ready of a model
  // with a stream, in the order of that.
  virtual void copy(std::span<const float> from, std::span<float> to) = 0;
  virtual void add(std::span<const float> from, std::span<float> to) = 0;  // to += from
  virtual void divide(std::span<float> values, float divisor) = 0;
};

Memory& host_memory();

}  // namespace paceline::train
