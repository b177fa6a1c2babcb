// SPDX-License-Identifier: Apache-2.0
// A hash table from two numbers to one, of fixed capacity. Its memory comes from the system when it is used: the
// recorder's threads take none from the program's allocator. On one thread only.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace paceline::inject {

class NumberTable {
 public:
  // `most` is a power of two.
  explicit constexpr NumberTable(std::size_t most) : most_(most) {}

  // The value of a key; 0 if it has none. Key 0, 0 does not exist.
  std::uint32_t find(std::uint64_t a, std::uint64_t b) const {
    if (entries_ == nullptr) return 0;
    const Entry& entry = entries_[place(a, b)];
    return entry.value;
  }
  bool is_full() const { return count_ >= most_; }
  // Gives a key that has no value a value other than 0. Returns false if the table is full.
  bool add(std::uint64_t a, std::uint64_t b, std::uint32_t value) {
    if (is_full() || !allocate()) return false;
    entries_[place(a, b)] = {a, b, value};
    ++count_;
    return true;
  }
  void clear() {
    if (entries_ != nullptr) munmap(entries_, bytes());
    entries_ = nullptr;
    count_ = 0;
  }

 private:
  struct Entry {
    std::uint64_t a, b;
    std::uint32_t value;
  };
  std::size_t bytes() const { return 2 * most_ * sizeof(Entry); }  // at most half full
  bool allocate() {
    if (entries_ != nullptr) return true;
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    entries_ = static_cast<Entry*>(memory);
    return true;
  }
  std::size_t place(std::uint64_t a, std::uint64_t b) const {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    std::uint64_t hash = (a * odd ^ b) * odd;
    hash ^= hash >> 32;
    std::size_t at = hash % (2 * most_);
    while (entries_[at].value != 0 && (entries_[at].a != a || entries_[at].b != b)) at = (at + 1) % (2 * most_);
    return at;
  }

  const std::size_t most_;
  Entry* entries_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace paceline::inject
