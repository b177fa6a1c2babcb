// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/scheduler/numbered_folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace paceline::inject {

std::size_t list_numbers(int folder, std::span<pid_t> into) {
  if (lseek(folder, 0, SEEK_SET) != 0) return 0;
  struct Entry {  // linux_dirent64, see getdents64(2)
    std::uint64_t inode, offset;
    unsigned short length;
    unsigned char type;
    char name[1];
  };
  alignas(Entry) char buffer[4096];
  std::size_t found = 0;
  for (;;) {
    const long got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const char* entry = buffer + at;
      unsigned short length;
      memcpy(&length, entry + offsetof(Entry, length), sizeof length);
      const long number = strtol(entry + offsetof(Entry, name), nullptr, 10);  // 0 for names
      if (number > 0 && found < into.size()) into[found++] = static_cast<pid_t>(number);
      at += length;
    }
  }
  const auto end = into.begin() + static_cast<std::ptrdiff_t>(found);
  if (!std::is_sorted(into.begin(), end)) std::sort(into.begin(), end);
  return found;
}

}  // namespace paceline::inject
