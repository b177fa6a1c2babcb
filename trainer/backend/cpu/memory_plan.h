// SPDX-License-Identifier: Apache-2.0
// The memory of a whole network, planned before it is allocated. Call acquire() and release() in the order in which
// training will need the tensors; tensors whose lifetimes do not overlap share a block. Then allocate() gets the memory
// once, on huge pages if the kernel has them.
#pragma once

#include <memory>
#include <vector>

#include "trainer/backend/cpu/onednn.h"

namespace paceline::train {

class MemoryPlan {
 public:
  explicit MemoryPlan(dnnl::engine engine) : engine_(std::move(engine)) {}

  dnnl::memory acquire(const onednn::Desc& desc);  // with one owner; has no address before allocate()
  void share(const dnnl::memory& memory);          // one owner more
  void release(const dnnl::memory& memory);        // one owner less; the block of a tensor without owners is reused
  int owners(const dnnl::memory& memory) const;

  // Another description of the same bytes.
  dnnl::memory view(const dnnl::memory& memory, const onednn::Desc& desc);

  std::size_t bytes() const;  // of all blocks, as planned so far

  // Maps zeroed memory. The kernel fills each page when a thread first writes to it, so all threads of the first step
  // share this work, which takes seconds on some virtual machines.
  void allocate();

  // The bytes of the memory that the kernel has not filled yet.
  std::size_t unfilled_bytes() const;

 private:
  struct Tensor {
    dnnl::memory memory;
    std::size_t block;
    int owners;
  };
  struct Block {
    std::size_t bytes;
    bool free;
  };
  struct Unmap {
    std::size_t bytes;  // 0 before allocate()
    void operator()(void* pointer) const;
  };

  const Tensor& find(const dnnl::memory& memory) const;

  dnnl::engine engine_;
  std::vector<Tensor> tensors_;
  std::vector<Block> blocks_;
  std::unique_ptr<std::byte, Unmap> storage_;
};

}  // namespace paceline::train
