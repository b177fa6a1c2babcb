// SPDX-License-Identifier: Apache-2.0
// Reads memory of this process that its threads change or free at any time: an address that is gone is an error, not a
// fault. On one thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/inject/system/descriptor.h"

namespace paceline::inject {

using Address = std::uint64_t;

class ProgramMemory {
 public:
  // Chooses the way to read. process_vm_readv is the faster one (`fast`); where a filter of system calls is active,
  // which may end a program for a call that it did not expect, this class reads /proc/self/mem. Returns false if
  // neither works.
  bool open(bool fast);
  void close() { file_.close(); }

  // Copies `size` bytes. Cost: a system call, 0.3 to 1 µs.
  bool read(Address from, void* out, std::size_t size);

  // Copies `size` bytes from each of the addresses, one after another. Returns how many were read before the first that
  // could not be. Cost: one system call for 64 of them.
  std::size_t read_all(std::span<const Address> from, std::size_t size, void* out);

  // Reads small objects that lie close together: a page is read once, until forget_pages(), which also looks whether
  // the program has closed /proc/self/mem.
  bool read_near(Address from, void* out, std::size_t size);
  void forget_pages();
  template <class Value>
  bool read_value(Address from, Value& out) {
    return read_near(from, &out, sizeof out);
  }

 private:
  static constexpr std::size_t page_bytes = 4096, pages = 32;
  struct Page {
    Address at = 1;  // 1: none
    bool readable = false;
    std::byte bytes[page_bytes];
  };
  Page& page_at(Address at);

  bool by_file_ = false, file_is_ours_ = false;
  KeptDescriptor file_;
  Page kept_[pages];
};

}  // namespace paceline::inject
