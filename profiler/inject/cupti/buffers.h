// SPDX-License-Identifier: Apache-2.0
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
  // NVIDIA recommends 1 to 10 MB. But CUPTI returns a buffer only when all of its records are complete, and in a busy
  // program the newest records never are. So a killed process loses the buffer that was being filled: small buffers
  // lose little, some 600 records each.
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 17;
  static constexpr std::uint32_t count = 256;

  // Reserves the addresses; memory is used only as CUPTI writes. Returns false if there is no address space.
  bool make() {
    void* area = mmap(nullptr, buffer_bytes * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) return false;
    area_ = static_cast<std::uint8_t*>(area);
    for (Word& word : free_) word.store(~std::uint64_t{0}, std::memory_order_release);
    return true;
  }

  // Takes a zeroed buffer, or returns nullptr if all are in use.
  std::uint8_t* take() { return buffer(take_one(free_)); }

  // CUPTI returns a buffer with `bytes` bytes of records. Returns false if the buffer is not of this pool.
  bool put_full(std::uint8_t* buffer, std::size_t valid_bytes) {
    const std::uint32_t number = number_of(buffer);
    if (number == none) return false;
    valid_[number] = valid_bytes;
    put_one(full_, number);
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
    put_one(free_, number_of(buffer));
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t bits_of_word = 64;
  using Word = std::atomic<std::uint64_t>;
  using Set = Word[count / bits_of_word];  // a bit for each buffer

  static std::uint32_t take_one(Set& set) {
    for (Word& word : set) {
      std::uint64_t bits = word.load(std::memory_order_relaxed);
      while (bits != 0) {
        const std::uint64_t lowest = bits & -bits;
        if (word.compare_exchange_weak(bits, bits & ~lowest, std::memory_order_acquire, std::memory_order_relaxed)) {
          return static_cast<std::uint32_t>(&word - set) * bits_of_word +
                 static_cast<std::uint32_t>(std::countr_zero(lowest));
        }
      }
    }
    return none;
  }
  static void put_one(Set& set, std::uint32_t number) {
    set[number / bits_of_word].fetch_or(std::uint64_t{1} << number % bits_of_word, std::memory_order_release);
  }
  std::uint8_t* buffer(std::uint32_t number) const { return number == none ? nullptr : area_ + number * buffer_bytes; }
  std::uint32_t number_of(const std::uint8_t* buffer) const {
    if (buffer < area_ || buffer >= area_ + count * buffer_bytes) return none;
    return static_cast<std::uint32_t>(static_cast<std::size_t>(buffer - area_) / buffer_bytes);
  }

  std::uint8_t* area_ = nullptr;
  Set free_ = {}, full_ = {};
  std::size_t valid_[count] = {};
};

// Finds out whether CUPTI holds records back: a kernel never ends, or the device's queue is never empty and its buffers
// fill slowly.
class StallWatch {
 public:
  explicit StallWatch(unsigned rounds) : most_rounds_(rounds) {}

  // Called once in each round with the number of buffers that CUPTI has taken and returned. Returns true if it had a
  // buffer and returned none during the last `rounds` rounds, and begins to count again.
  bool is_stalled(std::uint32_t taken, std::uint32_t returned) {
    const bool waits = returned == seen_ && taken != returned;
    seen_ = returned;
    rounds_ = waits ? rounds_ + 1 : 0;
    if (rounds_ < most_rounds_) return false;
    rounds_ = 0;
    return true;
  }

 private:
  unsigned most_rounds_, rounds_ = 0;
  std::uint32_t seen_ = 0;
};

}  // namespace paceline::inject::cupti
