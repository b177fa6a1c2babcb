// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/input.h"

#include <algorithm>
#include <new>

#include "trainer/backend/cuda/kernels.h"
#include "trainer/backend/cuda/layout.h"

namespace paceline::train::cuda {

void* Input::Pinned::do_allocate(std::size_t bytes, std::size_t) {
  void* memory = nullptr;
  if (cudaSetDevice(device) != cudaSuccess ||
      cudaHostAlloc(&memory, std::max<std::size_t>(bytes, 1), cudaHostAllocPortable) != cudaSuccess) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  return memory;
}

void Input::Pinned::do_deallocate(void* memory, std::size_t, std::size_t) { cudaFreeHost(memory); }

Input::Input(cudaStream_t compute, const Shape& image, std::int64_t batch)
    : compute_(compute), image_(image), batch_(batch), stored_channels_(to_multiple(image.channels, channel_group)) {
  PACELINE_CHECK_CUDA(cudaGetDevice(&pinned_.device));
  for (Slot& slot : slots_) {
    slot.pixels = device_buffer(static_cast<std::size_t>(batch * image.size()) * sizeof(float));
    slot.cuts = device_buffer(static_cast<std::size_t>(batch) * sizeof(ImageCut));
  }
}

Input::Slot& Input::copy(std::span<const std::byte> pixels, std::span<const std::byte> cuts) {
  if (slots_[next_].of != nullptr) next_ = 1 - next_;  // announced and not taken yet
  Slot& slot = slots_[next_];
  next_ = 1 - next_;
  for (Slot& other : slots_) {
    if (other.of == pixels.data()) other.of = nullptr;  // an outdated copy of the same buffer
  }
  slot.of = nullptr;
  slot.used.make_wait(stream_);
  const auto send = [&](std::span<const std::byte> from, const Buffer& to) {
    if (from.empty()) return;
    PACELINE_CHECK_CUDA(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyHostToDevice, stream_));
  };
  send(cuts, slot.cuts);  // first, because from pageable memory the driver may wait for the work in the stream
  send(pixels, slot.pixels);
  slot.copied.record(stream_);
  return slot;
}

// The slot of an announced batch, else of a copy that starts now.
Input::Slot& Input::slot_of(std::span<const std::byte> pixels, std::span<const std::byte> cuts) {
  Slot* found = nullptr;
  for (Slot& slot : slots_) {
    if (slot.of != nullptr && slot.of == pixels.data()) found = &slot;
  }
  if (found == nullptr) found = &copy(pixels, cuts);
  found->of = nullptr;
  found->copied.make_wait(compute_);
  return *found;
}

void Input::done(Slot& slot) { slot.used.record(compute_); }

// Returns the number of samples.
std::int64_t Input::clear_rest(std::size_t values, Storage storage, void* activation) {
  const std::int64_t samples = static_cast<std::int64_t>(values) / image_.size();
  if (samples < batch_) {
    const std::int64_t stored = stored_channels_ * image_.height * image_.width;
    const auto size = static_cast<std::size_t>(stored) * bytes_of(storage);
    PACELINE_CHECK_CUDA(cudaMemsetAsync(static_cast<std::byte*>(activation) + static_cast<std::size_t>(samples) * size,
                                        0, static_cast<std::size_t>(batch_ - samples) * size, compute_));
  }
  return samples;
}

void Input::fill(std::span<const float> planes, Storage storage, void* activation) {
  Slot& slot = slot_of(std::as_bytes(planes), {});
  const std::int64_t samples = clear_rest(planes.size(), storage, activation);
  kernels::planes_to_rows(compute_, storage, slot.pixels.data<float>(), activation, samples, image_.channels,
                          stored_channels_, image_.height * image_.width);
  done(slot);
}

void Input::fill(const StoredImages& images, Storage storage, void* activation) {
  Slot& slot = slot_of(std::as_bytes(images.planes), std::as_bytes(images.cuts));
  kernels::ByteImages in{};
  in.planes = slot.pixels.data<std::uint8_t>();
  in.cuts = slot.cuts.data<ImageCut>();
  std::ranges::copy(images.mean, in.mean);
  std::ranges::copy(images.scale, in.scale);
  in.samples = clear_rest(images.planes.size(), storage, activation);
  in.channels = image_.channels;
  in.size = image_.height;
  kernels::bytes_to_rows(compute_, storage, in, activation, stored_channels_);
  done(slot);
}

void Input::prefetch(std::span<const float> planes) {
  const auto bytes = std::as_bytes(planes);
  copy(bytes, {}).of = bytes.data();
}

void Input::prefetch(const StoredImages& images) {
  const auto bytes = std::as_bytes(images.planes);
  copy(bytes, std::as_bytes(images.cuts)).of = bytes.data();
}

}  // namespace paceline::train::cuda
