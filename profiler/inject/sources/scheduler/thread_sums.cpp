// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/scheduler/thread_sums.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/inject/buffer/clock.h"
#include "profiler/inject/sources/scheduler/numbered_folder.h"

namespace paceline::inject {
namespace {

void sums_path(pid_t thread, char (&path)[64]) {
  snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", static_cast<int>(thread));
}

}  // namespace

bool ThreadFolder::open() {
  char self[32] = "";
  // In a container with the host's /proc, threads have other numbers there.
  if (readlink("/proc/self", self, sizeof self - 1) <= 0 || strtol(self, nullptr, 10) != getpid()) return false;
  return folder_.keep(open_high("/proc/self/task", O_DIRECTORY));
}

std::uint64_t ThreadFolder::count() const {
  struct stat now {};
  return folder_.is_ours(now) && now.st_nlink > 2 ? now.st_nlink - 2 : 0;
}

std::size_t ThreadFolder::list(std::span<pid_t> into) const {
  return folder_.is_ours() ? list_numbers(folder_.number(), into) : 0;
}

bool read_sums_of_a_moment(pid_t thread, KeptFile* file, bool clock_is_allowed, std::uint64_t& at, ThreadSums& sums) {
  constexpr double longest_s = 50e-6;
  constexpr int most_readings = 4;  // until one is as short
  for (int i = 0; i < most_readings; ++i) {
    at = ticks();
    if (!read_thread_sums(thread, file, clock_is_allowed, sums)) return false;
    if (static_cast<double>(ticks() - at) < longest_s * clock_state.ticks_per_second) break;
  }
  return true;
}

bool read_running_time(pid_t thread, std::uint64_t& running_ns) {
  // The kernel's numbering of the clocks of threads, as in glibc's pthread_getcpuclockid: 4 = of a thread, 2 = as the
  // scheduler counts.
  const auto clock = static_cast<clockid_t>(~static_cast<unsigned>(thread) << 3 | 4 | 2);
  timespec time{};
  if (syscall(SYS_clock_gettime, clock, &time) != 0) return false;
  running_ns = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  return true;
}

bool open_thread_sums(pid_t thread, KeptFile& file) {
  char path[64];
  sums_path(thread, path);
  return file.open(path);
}

bool read_thread_sums(pid_t thread, KeptFile* file, bool clock_is_allowed, ThreadSums& sums) {
  char path[64], text[96];
  if (file != nullptr) {
    if (file->read(text, sizeof text) == 0) return false;
  } else {
    sums_path(thread, path);
    if (read_file_high(path, text, sizeof text) == 0) return false;
  }
  char* end = nullptr;
  sums.running_ns = strtoull(text, &end, 10);
  sums.waiting_ns = strtoull(end, nullptr, 10);
  return !clock_is_allowed || read_running_time(thread, sums.running_ns);
}

void read_thread_name(pid_t thread, char (&name)[16]) {
  char path[64], text[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", static_cast<int>(thread));
  memset(name, 0, sizeof name);
  memcpy(name, text, std::min(read_file_high(path, text, sizeof text), sizeof name - 1));
}

}  // namespace paceline::inject
