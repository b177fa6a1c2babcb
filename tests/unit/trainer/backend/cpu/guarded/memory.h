// SPDX-License-Identifier: Apache-2.0
// Memory between inaccessible pages, and reports of accesses to these pages.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace paceline::train::guarded {

enum class Side { end, begin };  // the end of the memory that lies at an inaccessible page

// Zeroed. It need not be aligned at Side::end, where its address follows from its size.
class Memory {
 public:
  Memory(std::string name, std::size_t bytes, Side side);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  // "64 bytes beyond the end of NAME", or nothing if the address is not near this memory.
  std::string place(const void* address) const;

 private:
  std::string name_;
  std::size_t bytes_, mapped_;
  std::byte *region_, *data_;
};

// Makes this process end with status `faulted` at its first access to inaccessible memory, after it has written a
// report to `told`, 512 bytes that another process shares. `arguments` is the memory in use and must not move.
constexpr int faulted = 77;
void tell_faults(char* told, const std::vector<Memory>* arguments);

}  // namespace paceline::train::guarded
