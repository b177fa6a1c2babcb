// SPDX-License-Identifier: Apache-2.0
// Numbers for strings, by a look-up that costs a few nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::analysis::kineto {

// Faster than operator== for short texts, which calls a function of the C library.
inline bool same_text(std::string_view a, std::string_view b) {
  const std::size_t size = a.size();
  if (size != b.size()) return false;
  const auto differ = [&]<class Word>(Word, std::size_t at) {
    Word of_a, of_b;
    std::memcpy(&of_a, a.data() + at, sizeof of_a);
    std::memcpy(&of_b, b.data() + at, sizeof of_b);
    return of_a != of_b;
  };
  if (size >= 8) {
    for (std::size_t at = 0; at + 8 < size; at += 8) {
      if (differ(std::uint64_t{}, at)) return false;
    }
    return !differ(std::uint64_t{}, size - 8);  // the last word may overlap the one before
  }
  if (size >= 4) return !differ(std::uint32_t{}, 0) && !differ(std::uint32_t{}, size - 4);
  for (std::size_t at = 0; at < size; ++at) {
    if (a[at] != b[at]) return false;
  }
  return true;
}

// Equal strings have equal numbers, counted from 0 in the order in which they came.
class Interner {
 public:
  Interner() : slots_(1024) {}

  std::uint32_t intern(std::string_view text) {
    const std::uint64_t hash = hash_of(text);
    for (std::size_t at = hash >> shift_;; ++at) {
      Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.number == none) return add(slot, hash, text);
      if (slot.hash == static_cast<std::uint32_t>(hash) && same_text(texts_[slot.number], text)) return slot.number;
    }
  }
  std::string_view operator[](std::uint32_t number) const { return texts_[number]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(texts_.size()); }

  // The upper bits are the better ones.
  static std::uint64_t hash_of(std::string_view text) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    std::uint64_t hash = text.size() * odd;
    const auto mix = [&](std::uint64_t word) {
      hash = (hash ^ word) * odd;
      hash ^= hash >> 29;
    };
    const char* at = text.data();
    std::size_t left = text.size();
    std::uint64_t word = 0;
    for (; left > 8; at += 8, left -= 8) {
      std::memcpy(&word, at, 8);
      mix(word);
    }
    if (text.size() >= 8) {
      std::memcpy(&word, at + left - 8, 8);  // may overlap the one before
    } else if (left >= 4) {
      std::uint32_t first = 0, last = 0;
      std::memcpy(&first, at, 4);
      std::memcpy(&last, at + left - 4, 4);
      word = std::uint64_t{first} << 32 | last;
    } else {
      for (; left > 0; ++at, --left) word = word << 8 | static_cast<unsigned char>(*at);
    }
    mix(word);
    return hash * odd;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Slot {
    std::uint32_t hash = 0, number = none;
  };

  std::uint32_t add(Slot& slot, std::uint64_t hash, std::string_view text) {
    const std::uint32_t number = size();
    slot = {static_cast<std::uint32_t>(hash), number};
    texts_.push_back(keep(text));
    if (texts_.size() * 2 > slots_.size()) grow();
    return number;
  }

  // The texts lie in blocks, one behind the other: a string for each would take twice the memory.
  std::string_view keep(std::string_view text) {
    if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < text.size()) {
      blocks_.emplace_back().reserve(std::max(text.size(), std::size_t{64} << 10));
    }
    std::string& block = blocks_.back();
    const std::size_t at = block.size();
    block += text;
    return std::string_view(block).substr(at);
  }

  void grow() {
    std::vector<Slot> larger(slots_.size() * 2);
    --shift_;
    for (std::uint32_t number = 0; number < size(); ++number) {
      const std::uint64_t hash = hash_of(texts_[number]);
      std::size_t at = hash >> shift_;
      while (larger[at & (larger.size() - 1)].number != none) ++at;
      larger[at & (larger.size() - 1)] = {static_cast<std::uint32_t>(hash), number};
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;  // a power of two of them
  int shift_ = 64 - 10;
  std::deque<std::string> blocks_;  // a deque keeps addresses
  std::vector<std::string_view> texts_;
};

}  // namespace paceline::analysis::kineto
