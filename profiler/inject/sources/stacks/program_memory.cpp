// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/program_memory.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/inject/system/sysfs.h"

namespace paceline::inject {
bool ProgramMemory::open(bool fast) {
  static const std::uint64_t known = 0x9e3779b97f4a7c15;
  std::uint64_t seen = 0;
  by_file_ = false;
  const auto works = [&] { return read(reinterpret_cast<Address>(&known), &seen, sizeof seen) && seen == known; };
  if (fast && !has_seccomp_filter() && works()) return true;
  by_file_ = true;
  file_is_ours_ = file_.keep(open_high("/proc/self/mem"));
  return file_is_ours_ && works();
}

bool ProgramMemory::read(Address from, void* out, std::size_t size) {
  if (by_file_) {
    return from >> 63 == 0 && file_is_ours_ &&
           pread(file_.number(), out, size, static_cast<off_t>(from)) == static_cast<ssize_t>(size);
  }
  const iovec local{out, size};
  const iovec remote{reinterpret_cast<void*>(from), size};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::size_t ProgramMemory::read_all(std::span<const Address> from, std::size_t size, void* out) {
  constexpr std::size_t at_once = 64;
  auto* to = static_cast<std::byte*>(out);
  std::size_t done = 0;
  while (done < from.size()) {
    const std::size_t count = by_file_ ? 1 : std::min(at_once, from.size() - done);
    std::size_t got = 0;
    if (by_file_) {
      got = read(from[done], to + done * size, size) ? 1 : 0;
    } else {
      iovec remote[at_once];
      for (std::size_t i = 0; i < count; ++i) remote[i] = {reinterpret_cast<void*>(from[done + i]), size};
      const iovec local{to + done * size, count * size};
      const ssize_t bytes = process_vm_readv(getpid(), &local, 1, remote, count, 0);
      got = bytes > 0 ? static_cast<std::size_t>(bytes) / size : 0;
    }
    done += got;
    if (got < count) break;
  }
  return done;
}

void ProgramMemory::forget_pages() {
  if (by_file_) file_is_ours_ = file_.is_ours();
  for (Page& page : kept_) page.at = 1;
}

ProgramMemory::Page& ProgramMemory::page_at(Address at) {
  Page& page = kept_[at / page_bytes % pages];
  if (page.at != at) {
    page.at = at;
    page.readable = read(at, page.bytes, page_bytes);
  }
  return page;
}

bool ProgramMemory::read_near(Address from, void* out, std::size_t size) {
  auto* to = static_cast<std::byte*>(out);
  while (size > 0) {
    const std::size_t offset = from % page_bytes, part = std::min(size, page_bytes - offset);
    const Page& page = page_at(from - offset);
    if (!page.readable) return false;
    memcpy(to, page.bytes + offset, part);
    to += part;
    from += part;
    size -= part;
  }
  return true;
}

}  // namespace paceline::inject
