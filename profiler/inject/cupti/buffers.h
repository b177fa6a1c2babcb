// The buffers that CUPTI fills with records: a fixed pool that is created once. Buffers are taken and returned in the
// program's calls and in CUPTI's threads. Both therefore cost only a bit search and a store: no allocation, no lock, no
// system call.
#pragma once

#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace paceline::inject::cupti {

class BufferPool {
 public:
  // NVIDIA recommends 1 to 10 MB. From CUDA 13.0 on, each thread that calls CUDA holds a buffer, so
  // these buffers are smaller and more numerous.
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
  static constexpr std::uint32_t count = 32;

  // Reserves the addresses; memory is used only as CUPTI writes. Returns false if there is no address space.
  bool make() {
    void* area = mmap(nullptr, buffer_bytes * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) return false;
    area_ = static_cast<std::uint8_t*>(area);
    free_.store(~std::uint32_t{0}, std::memory_order_release);
    return true;
  }

  // Takes a zeroed buffer, or returns nullptr if all are in use.
  std::uint8_t* take() { return buffer(take_one(free_)); }

  // CUPTI returns a buffer with `bytes` bytes of records. Returns false if the buffer is not of this pool.
  bool put_full(std::uint8_t* buffer, std::size_t valid_bytes) {
    const std::uint32_t number = number_of(buffer);
    if (number == none) return false;
    valid_[number] = valid_bytes;
    full_.fetch_or(1U << number, std::memory_order_release);
    return true;
  }

  // The next buffer with records, or nullptr. The caller gives it back with put_free(), which zeroes the used part.
  std::uint8_t* take_full(std::size_t& valid_bytes) {
    const std::uint32_t number = take_one(full_);
    if (number != none) valid_bytes = valid_[number];
    return buffer(number);
  }
  void put_free(std::uint8_t* buffer, std::size_t used_bytes) {
    memset(buffer, 0, used_bytes < buffer_bytes ? used_bytes : buffer_bytes);
    free_.fetch_or(1U << number_of(buffer), std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  static std::uint32_t take_one(std::atomic<std::uint32_t>& set) {
    std::uint32_t bits = set.load(std::memory_order_relaxed);
    while (bits != 0) {
      const std::uint32_t lowest = bits & -bits;
      if (set.compare_exchange_weak(bits, bits & ~lowest, std::memory_order_acquire, std::memory_order_relaxed)) {
        return static_cast<std::uint32_t>(std::countr_zero(lowest));
      }
    }
    return none;
  }
  std::uint8_t* buffer(std::uint32_t number) const { return number == none ? nullptr : area_ + number * buffer_bytes; }
  std::uint32_t number_of(const std::uint8_t* buffer) const {
    if (buffer < area_ || buffer >= area_ + count * buffer_bytes) return none;
    return static_cast<std::uint32_t>(static_cast<std::size_t>(buffer - area_) / buffer_bytes);
  }

  std::uint8_t* area_ = nullptr;
  std::atomic<std::uint32_t> free_{0}, full_{0};
  std::size_t valid_[count] = {};
};

}  // namespace paceline::inject::cupti
