// A set of chunk numbers that many threads take from and put into, without locks: one bit a chunk.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace paceline::inject {

class ChunkSet {
 public:
  static constexpr std::uint32_t capacity = 16384;  // 1 GiB of chunks
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  void insert(std::uint32_t chunk) {
    words_[chunk / 64].fetch_or(std::uint64_t{1} << chunk % 64, std::memory_order_release);
  }

  // Removes one of the first `chunks` numbers and returns it, or `none`. Looks at one word for 64 chunks.
  std::uint32_t take(std::uint32_t chunks) {
    for (std::uint32_t word = 0; word * 64 < chunks; ++word) {
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

  // How many there are, at some moment during the call.
  std::uint32_t count() const {
    int members = 0;
    for (const auto& word : words_) members += std::popcount(word.load(std::memory_order_relaxed));
    return static_cast<std::uint32_t>(members);
  }

  void clear() {
    for (auto& word : words_) word.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> words_[capacity / 64] = {};
};

}  // namespace paceline::inject
