// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/system/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace paceline::inject {
namespace {

void wake(std::atomic<std::uint32_t>& word, int threads) {
  const int error = errno;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
  errno = error;
}

}  // namespace

bool wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns) {
  const int error = errno;
  const timespec deadline{deadline_ns / 1'000'000'000, deadline_ns % 1'000'000'000};
  const long result =
      syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  const bool may_have_changed = result == 0 || errno == EAGAIN || errno == EINTR;
  errno = error;
  return may_have_changed;
}

void wake_one(std::atomic<std::uint32_t>& word) { wake(word, 1); }
void wake_all(std::atomic<std::uint32_t>& word) { wake(word, INT_MAX); }

}  // namespace paceline::inject
