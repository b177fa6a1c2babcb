// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/scheduler/iteration_sums.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "profiler/inject/buffer/clock.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/sources/scheduler/thread_sums.h"

namespace paceline::inject {
namespace {

constexpr double shortest_interval_s = 0.005, longest_interval_s = 0.04;

std::atomic<bool> is_allowed{false};

// Of the one thread.
pid_t reader = 0;
KeptFile file;
std::uint64_t read_at = 0, all_read_at = 0;
ThreadSums sums;

}  // namespace

void allow_iteration_sums(bool allowed) { is_allowed.store(allowed, std::memory_order_relaxed); }

void record_iteration_sums() {
  if (!is_allowed.load(std::memory_order_relaxed) || !recording()) return;
  const std::uint64_t now = ticks();
  if (static_cast<double>(now - read_at) < shortest_interval_s * clock_state.ticks_per_second) return;
  read_at = now;
  if (reader == 0) {
    reader = static_cast<pid_t>(syscall(SYS_gettid));
    open_thread_sums(reader, file);
  }
  // The clock is one system call of three.
  std::uint64_t at = now;
  if (static_cast<double>(now - all_read_at) < longest_interval_s * clock_state.ticks_per_second) {
    if (!read_running_time(reader, sums.running_ns)) return;
  } else {
    all_read_at = now;
    if (!read_sums_of_a_moment(reader, &file, true, at, sums)) return;
  }
  emit_at(at, events::ThreadTimes{.thread = static_cast<std::uint32_t>(reader),
                                  .running_ns = sums.running_ns,
                                  .waiting_ns = sums.waiting_ns});
}

void forget_iteration_sums() {
  allow_iteration_sums(false);
  file.close();
  reader = 0;
  read_at = all_read_at = 0;
}

}  // namespace paceline::inject
