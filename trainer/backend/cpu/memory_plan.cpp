// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/memory_plan.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <stdexcept>

namespace paceline::train {
namespace {
constexpr std::size_t page = std::size_t{2} << 20;  // a huge page
// Avoids block sizes of a multiple of 4 KiB, which would put equal positions of all tensors into the same cache sets.
constexpr std::size_t stagger = 4096 + 256;
std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }
std::size_t room_of(std::size_t bytes) { return round_up(bytes, 4096) + stagger; }

// Maps whole huge pages. The heap could return memory that was in use before, which would have to be zeroed here.
std::byte* map_zeroed(std::size_t bytes) {
  const std::size_t reserved = bytes + page;  // the kernel aligns to small pages only
  void* const mapped = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t before = round_up(address, page) - address, after = page - before;
  if (before > 0) munmap(begin, before);
  if (after > 0) munmap(begin + before + bytes, after);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}
}  // namespace

std::size_t MemoryPlan::unfilled_bytes() const {
  if (!storage_) return 0;
  const auto small_page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = storage_.get_deleter().bytes;
  std::vector<unsigned char> filled(mapped / small_page);  // the lowest bit of each
  if (mincore(storage_.get(), mapped, filled.data()) != 0) return mapped;
  return small_page *
         static_cast<std::size_t>(std::ranges::count_if(filled, [](unsigned char bits) { return (bits & 1) == 0; }));
}

void MemoryPlan::Unmap::operator()(void* pointer) const { munmap(pointer, bytes); }

dnnl::memory MemoryPlan::acquire(const onednn::Desc& desc) {
  const std::size_t need = onednn::bytes(desc);
  // Takes the smallest free block that is large enough, else grows the largest free block, else makes a new one.
  std::size_t best = blocks_.size();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].free) continue;
    if (best == blocks_.size()) {
      best = i;
      continue;
    }
    const bool fits = blocks_[i].bytes >= need, best_fits = blocks_[best].bytes >= need;
    if (fits ? !best_fits || blocks_[i].bytes < blocks_[best].bytes
             : !best_fits && blocks_[i].bytes > blocks_[best].bytes) {
      best = i;
    }
  }
  if (best == blocks_.size()) blocks_.push_back({0, true});
  blocks_[best].free = false;
  blocks_[best].bytes = std::max(blocks_[best].bytes, need);
  tensors_.push_back({dnnl::memory(desc, engine_, DNNL_MEMORY_NONE), best, 1});
  return tensors_.back().memory;
}

const MemoryPlan::Tensor& MemoryPlan::find(const dnnl::memory& memory) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const Tensor& tensor) { return tensor.memory.get() == memory.get(); });
  if (found == tensors_.end()) throw std::logic_error("memory of another plan");
  return *found;
}

void MemoryPlan::share(const dnnl::memory& memory) { ++const_cast<Tensor&>(find(memory)).owners; }

void MemoryPlan::release(const dnnl::memory& memory) {
  auto& tensor = const_cast<Tensor&>(find(memory));
  if (--tensor.owners == 0) blocks_[tensor.block].free = true;
}

int MemoryPlan::owners(const dnnl::memory& memory) const { return find(memory).owners; }

dnnl::memory MemoryPlan::view(const dnnl::memory& memory, const onednn::Desc& desc) {
  const Tensor& base = find(memory);
  if (onednn::bytes(desc) > blocks_[base.block].bytes) throw std::logic_error("a view larger than its tensor");
  const std::size_t block = base.block;
  tensors_.push_back({dnnl::memory(desc, engine_, DNNL_MEMORY_NONE), block, 0});
  return tensors_.back().memory;
}

std::size_t MemoryPlan::bytes() const {
  std::size_t total = 1;
  for (const Block& block : blocks_) total += room_of(block.bytes);
  return round_up(total, page);
}

void MemoryPlan::allocate() {
  std::vector<std::size_t> offsets;
  std::size_t total = 0;
  for (const Block& block : blocks_) {
    offsets.push_back(total);
    total += room_of(block.bytes);
  }
  storage_ = {map_zeroed(bytes()), Unmap{bytes()}};
  for (const Tensor& tensor : tensors_) tensor.memory.set_data_handle(storage_.get() + offsets[tensor.block]);
}

}  // namespace paceline::train
