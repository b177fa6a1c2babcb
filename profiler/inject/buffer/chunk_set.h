// SPDX-License-Identifier: Apache-2.0
// Sets of numbers that many threads add to and remove from without locks. Each number is one bit.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "profiler/format/layout.h"

namespace paceline::inject {

template <std::uint32_t Capacity>
class NumberSet {
 public:
  static constexpr std::uint32_t capacity = Capacity;
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  void insert(std::uint32_t number) {
    words_[number / 64].fetch_or(std::uint64_t{1} << number % 64, std::memory_order_release);
  }

  bool holds(std::uint32_t number) const {
    return (words_[number / 64].load(std::memory_order_acquire) >> number % 64 & 1) != 0;
  }

  // Removes one of the first `numbers` numbers and returns it, or returns `none`. Reads one word for 64 numbers.
  std::uint32_t take(std::uint32_t numbers) {
    for (std::uint32_t word = 0; word * 64 < numbers; ++word) {
      std::uint64_t bits = words_[word].load(std::memory_order_relaxed);
      while (bits != 0) {
        const std::uint64_t lowest = bits & -bits;
        if (words_[word].compare_exchange_weak(bits, bits & ~lowest, std::memory_order_acquire,
                                               std::memory_order_relaxed)) {
          return word * 64 + static_cast<std::uint32_t>(std::countr_zero(lowest));
        }
      }
    }
    return none;
  }

  // Removes `numbers` numbers from `first` on if all of them are in the set. Returns false and removes none otherwise.
  // The numbers must lie in one word.
  bool take_all(std::uint32_t first, std::uint32_t numbers) {
    const std::uint64_t wanted = ((std::uint64_t{1} << numbers) - 1) << first % 64;
    std::uint64_t bits = words_[first / 64].load(std::memory_order_relaxed);
    while ((bits & wanted) == wanted) {
      if (words_[first / 64].compare_exchange_weak(bits, bits & ~wanted, std::memory_order_acquire,
                                                   std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  // The number of members among the first `numbers` numbers, at some moment during the call.
  std::uint32_t count(std::uint32_t numbers = capacity) const {
    int members = 0;
    for (std::uint32_t word = 0; word * 64 < numbers; ++word) {
      members += std::popcount(words_[word].load(std::memory_order_relaxed));
    }
    return static_cast<std::uint32_t>(members);
  }

  // Removes the first `numbers` numbers.
  void clear(std::uint32_t numbers = capacity) {
    for (std::uint32_t word = 0; word * 64 < numbers; ++word) words_[word].store(0, std::memory_order_relaxed);
  }

 private:
  static_assert(capacity % 64 == 0);
  std::atomic<std::uint64_t> words_[capacity / 64] = {};
};

using ChunkSet = NumberSet<format::max_live_bytes / format::chunk_bytes>;  // of units
using PageSet = NumberSet<format::max_live_bytes / format::page_bytes>;    // of pages, or of chunks by their first page
using LostSet = NumberSet<(format::lost_entries + 63) / 64 * 64>;

}  // namespace paceline::inject
