// SPDX-License-Identifier: Apache-2.0
// Makes the first activation from the loader's batch. The GPU's copy engine copies host memory into one of two buffers,
// the next batch while this one is computed. A kernel casts, cuts, mirrors, normalises and changes the layout.
#pragma once

#include <memory_resource>
#include <span>

#include "trainer/backend/cuda/precision.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train::cuda {

class Input {
 public:
  // compute: the stream of the network. image: the published shape; on the GPU its channels are filled up.
  Input(cudaStream_t compute, const Shape& image, std::int64_t batch);

  // Fills `activation` with these samples, and with zeros for missing ones, asynchronously in the compute stream. The
  // images must not change until that work has run.
  void fill(std::span<const float> planes, Storage storage, void* activation);
  void fill(const StoredImages& images, Storage storage, void* activation);

  // Starts to copy the images of a later fill(). Only one batch can be announced at a time.
  void prefetch(std::span<const float> planes);
  void prefetch(const StoredImages& images);

  // Pinned host memory, from which a copy runs in parallel to the CPU and the kernels.
  std::pmr::memory_resource* pinned() { return &pinned_; }

 private:
  // One of the two copies in GPU memory.
  struct Slot {
    Buffer pixels, cuts;
    Event copied, used;        // by the kernel, in the compute stream
    const void* of = nullptr;  // the buffer that it is an announced copy of
  };

  struct Pinned final : std::pmr::memory_resource {
    int device = 0;  // loader threads make it current too, because threads start with device 0
    void* do_allocate(std::size_t bytes, std::size_t) override;
    void do_deallocate(void* memory, std::size_t, std::size_t) override;
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  };

  // The slot that holds these bytes, at the latest when `copied` is reached.
  Slot& copy(std::span<const std::byte> pixels, std::span<const std::byte> cuts);
  Slot& slot_of(std::span<const std::byte> pixels, std::span<const std::byte> cuts);
  void done(Slot& slot);
  std::int64_t clear_rest(std::size_t values, Storage storage, void* activation);

  const cudaStream_t compute_;
  const Shape image_;
  const std::int64_t batch_, stored_channels_;
  Stream stream_{"input copies"};
  Slot slots_[2];
  int next_ = 0;
  Pinned pinned_;
};

}  // namespace paceline::train::cuda
