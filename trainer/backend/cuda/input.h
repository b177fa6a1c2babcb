// From the loader's batch to the first activation. The host's memory is copied by the GPU's copy engine into one of two
// buffers, the next batch's while this one is computed; a kernel casts, cuts, mirrors, normalises and lays out.
#pragma once

#include <memory>
#include <memory_resource>
#include <span>

#include "trainer/backend/cuda/precision.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train::cuda {

class Input {
 public:
  // compute: the stream that the network runs in. image: as published, of which the GPU has its channels filled up.
  Input(cudaStream_t compute, const Shape& image, std::int64_t batch);

  // Fills `activation` with these samples, and with zeros for those that the batch lacks; asynchronous, in the compute
  // stream. The images must stay as they are until that has run.
  void fill(std::span<const float> planes, Storage storage, void* activation);
  void fill(const StoredImages& images, Storage storage, void* activation);

  // Starts to copy what a following fill() will take. Not while an announced one has not been taken.
  void prefetch(std::span<const float> planes);
  void prefetch(const StoredImages& images);

  // Pinned host memory, from which a copy runs beside the CPU and the kernels.
  std::pmr::memory_resource* pinned() { return &pinned_; }

 private:
  // One of the two copies in GPU memory.
  struct Slot {
    Buffer pixels, cuts;
    Event copied, used;        // by the kernel, in the compute stream
    const void* of = nullptr;  // whose copy it is, announced and not yet taken
  };

  struct Pinned final : std::pmr::memory_resource {
    int device = 0;  // that the loader's threads, too, make current: each begins with the first one
    void* do_allocate(std::size_t bytes, std::size_t) override;
    void do_deallocate(void* memory, std::size_t, std::size_t) override;
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  };

  // The slot that holds these bytes, or will when `copied` is reached.
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
