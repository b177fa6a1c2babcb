// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/starts.h"

#include <unistd.h>

#include <atomic>

#include "profiler/inject/system/system_clock.h"

namespace paceline::inject {
namespace {

// A start raises its counter and then looks for forks; a fork raises its counter and then looks for starts. So at least
// one of the two sees the other (Dekker's algorithm, with sequentially consistent order).
std::atomic<int> in_progress{0}, forking{0};

}  // namespace

bool wait_briefly(std::int64_t& give_up) {
  constexpr std::int64_t longest_wait_ns = 2'000'000'000;
  const std::int64_t now = monotonic_ns();
  if (give_up == 0) give_up = now + longest_wait_ns;
  if (now >= give_up) return false;
  usleep(20);
  return true;
}

StartInProgress::StartInProgress() {
  in_progress.fetch_add(1);
  for (std::int64_t give_up = 0; forking.load() > 0 && wait_briefly(give_up);) {
  }
}

StartInProgress::~StartInProgress() { in_progress.fetch_sub(1); }

void wait_for_starts() {
  forking.fetch_add(1);
  for (std::int64_t give_up = 0; in_progress.load() > 0;) {
    forking.fetch_sub(1);  // the start must not wait for this fork
    const bool goes_on = wait_briefly(give_up);
    forking.fetch_add(1);
    if (!goes_on) break;
  }
}

void fork_is_over() { forking.fetch_sub(1); }

void reset_starts_in_child() {
  in_progress = 0;
  forking = 0;
}

}  // namespace paceline::inject
