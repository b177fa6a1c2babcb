// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/system/sysfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

namespace paceline::inject {
namespace {

constexpr rlim_t fewest_files = 256;

std::size_t read_whole(int number, char* out, std::size_t capacity) {
  const Descriptor file(number);
  out[0] = '\0';
  std::size_t size = 0;
  while (file.is_open() && size + 1 < capacity) {
    const ssize_t got = ::read(file.number(), out + size, capacity - 1 - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  while (size > 0 && out[size - 1] == '\n') --size;
  out[size] = '\0';
  return size;
}

}  // namespace

std::size_t read_file(const char* path, char* out, std::size_t capacity) {
  return read_whole(::open(path, O_RDONLY | O_CLOEXEC), out, capacity);
}

std::size_t read_file_high(const char* path, char* out, std::size_t capacity) {
  return read_whole(open_high(path), out, capacity);
}

int open_high(const char* path, int flags) {
  rlimit limit{};
  struct stat wanted {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || stat(path, &wanted) != 0) return -1;
  const int low = ::open(path, O_RDONLY | O_CLOEXEC | flags);
  if (low < 0) return -1;
  const int high = fcntl(low, F_DUPFD_CLOEXEC, limit.rlim_cur < 1024 ? static_cast<int>(limit.rlim_cur / 2) : 512);
  const auto is_it = [&](int number) {
    struct stat file {};
    return fstat(number, &file) == 0 && file.st_dev == wanted.st_dev && file.st_ino == wanted.st_ino;
  };
  // The low number may be the program's by now.
  if (is_it(low)) ::close(low);
  if (high < 0 || is_it(high)) return high;
  ::close(high);
  return -1;
}

bool KeptFile::open(const char* path) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < fewest_files) return false;
  return descriptor_.keep(open_high(path));
}

bool KeptFile::is_there(struct stat& now) {
  if (descriptor_.is_ours(now)) return true;
  descriptor_.forget();
  return false;
}

std::size_t KeptFile::read(char* out, std::size_t capacity) {
  struct stat now {};
  out[0] = '\0';
  if (!is_there(now)) return 0;
  // The system returns a long text in pieces of a page, less one line at most. So a small piece is the end.
  constexpr ssize_t small = 2048;
  std::size_t size = 0;
  while (size + 1 < capacity) {
    const ssize_t got = pread(descriptor_.number(), out + size, capacity - 1 - size, static_cast<off_t>(size));
    if (got > 0) size += static_cast<std::size_t>(got);
    if (got < small) break;
  }
  out[size] = '\0';
  return size;
}

std::uint64_t KeptFile::links() {
  struct stat now {};
  return is_there(now) ? now.st_nlink : 0;
}

bool has_seccomp_filter() {
  char text[4096];
  read_file_high("/proc/thread-self/status", text, sizeof text);
  const char* line = strstr(text, "\nSeccomp:");
  return line == nullptr || strtol(line + strlen("\nSeccomp:"), nullptr, 10) != 0;
}

void sysfs_path(char* out, std::size_t capacity, const char* format, ...) {
  const char* root = getenv("PACELINE_TEST_SYSFS");
  const int length = snprintf(out, capacity, "%s/", root != nullptr ? root : "/sys");
  if (length < 0 || static_cast<std::size_t>(length) >= capacity) {
    out[0] = '\0';
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out + length, capacity - static_cast<std::size_t>(length), format, arguments);
  va_end(arguments);
}

}  // namespace paceline::inject
