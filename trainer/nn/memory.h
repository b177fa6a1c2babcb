// SPDX-License-Identifier: Apache-2.0
// The memory of a model's flat buffers, and operations on whole buffers there. Every step needs these operations on
// buffers as large as the network, so the device that holds the buffers performs them. The host may be unable to read
// and write the buffers: it copies their values.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace paceline::train {

class Memory {
 public:
  virtual ~Memory() = default;

  // Returns zeroed values, aligned to 64 bytes. Throws std::bad_alloc, or Error if the device fails.
  using Values = std::shared_ptr<float>;
  virtual Values allocate(std::size_t count) = 0;

  // Copies between this memory and the host's, in either direction, or within one of the two. The spans have the same
  // length.
  virtual void copy(std::span<const float> from, std::span<float> to) = 0;

  // The values as the host can read them: `values` itself where that is possible, else a copy of it in `room`.
  virtual std::span<const float> readable(std::span<const float> values, std::vector<float>& room) {
    room.resize(values.size());
    copy(values, room);
    return room;
  }

  // The spans have the same length and lie in buffers of this memory. All operations are complete when the call
  // returns. Inside gradients_ready of a model with a stream, they are queued in that stream instead.
  virtual void add(std::span<const float> from, std::span<float> to) = 0;  // to += from
  virtual void divide(std::span<float> values, float divisor) = 0;

  // Σ x² in float64, the same for any number of threads. Waits for the device.
  virtual double sum_of_squares(std::span<const float> values) = 0;
};

Memory& host_memory();

}  // namespace paceline::train
