// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/counters/counters.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "profiler/inject/buffer/gate.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/sources/counters/cgroup.h"
#include "profiler/inject/sources/counters/machine_facts.h"
#include "profiler/inject/sources/counters/samples.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/system/futex.h"
#include "profiler/inject/system/pace.h"
#include "profiler/inject/system/quiet_thread.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/inject/system/system_clock.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

constexpr std::int64_t second = 1'000'000'000;

pthread_t thread;
std::atomic<bool> has_thread{false};
// Threads sleep on these two; each becomes 1 once.
std::atomic<std::uint32_t> finishing{0}, ended{0};
Pace pace;  // 0 = no counters
bool after_fork = false;

// Sleeps until `word` is 1. Returns false if it is still 0 at the deadline (CLOCK_MONOTONIC).
bool wait_for(std::atomic<std::uint32_t>& word, std::int64_t deadline) {
  while (word.load(std::memory_order_acquire) == 0) {
    if (!wait_while(word, 0, deadline)) return false;
  }
  return true;
}

void set(std::atomic<std::uint32_t>& word) {
  word.store(1, std::memory_order_release);
  wake_one(word);
}

void stop_counters();

// Returns false, and takes none, in a pause of the recording.
bool sample(bool gpus) {
  if (!recording()) return false;
  begin_moment();
  sample_process();
  sample_network();
  sample_cgroup();
  if (gpus) sample_gpus();
  return true;
}

void* run(void*) {
  pthread_setname_np(pthread_self(), "paceline-count");
  open_process_counters();
  open_network_counters();
  open_cgroup_counters();
  sample(false);
  record_machine_facts();

  // NVML is not started in a process that ends soon.
  std::int64_t next = monotonic_ns();
  const std::int64_t gpus_from = next + second;
  bool gpus = false;
  for (;;) {
    next += pace.interval_ns();
    const std::int64_t now = monotonic_ns();
    if (next < now) next = now;  // missed samplings are skipped
    const bool ends = wait_for(finishing, next);
    const std::int64_t before = true_ns(CLOCK_THREAD_CPUTIME_ID);
    const bool records = sample(gpus);
    if (ends) break;
    if (records) pace.add_cost(true_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    if (!gpus && !after_fork && next >= gpus_from) {
      gpus = true;
      record_gpu_facts();
      open_gpu_counters();
      // Registered after NVML's exit handlers, so that it runs before them: no call of NVML may be in progress when
      // NVML shuts down.
      atexit(stop_counters);
    }
  }
  set(ended);
  return nullptr;
}

void read_interval() {
  constexpr std::uint64_t twentieth = 50'000, a_day = 86'400'000'000;
  const std::uint64_t interval_us = std::min(number_or(record::env_counters_us, twentieth), a_day);
  const bool asked_for = *text_or(record::env_counters_us, "") != '\0';
  pace = {.wanted_ns = static_cast<std::int64_t>(interval_us * 1000), .part = asked_for ? 100 : 2000};
}

void start_counters() {
  if (pace.wanted_ns == 0) return;
  constexpr std::size_t stack_bytes = 1024 * 1024;  // NVML's needs are not known
  const int error = start_quiet_thread(thread, run, stack_bytes);
  has_thread.store(error == 0, std::memory_order_release);
  if (error != 0) say("%s: no thread for counters: %s", session.file.path, strerror(error));
}

// Takes a last sample and ends the thread, which it waits for no longer than a second. Harmless when called twice, or
// in a child.
void stop_counters() {
  if (session.owner != getpid() || !has_thread.exchange(false)) return;
  set(finishing);
  // A driver may hang, and the program must end all the same.
  if (wait_for(ended, monotonic_ns() + second)) {
    pthread_join(thread, nullptr);
  } else {
    pthread_detach(thread);
  }
}

// A forked child that records starts anew, but without GPUs, because NVML does not outlive a fork.
void reset_counters_in_child() {
  has_thread.store(false);
  finishing.store(0);
  ended.store(0);
  reset_samples_in_child();
  after_fork = true;
  forget_files();
  forget_cgroup_files();
}

}  // namespace

const Source counters_source = {
    .start = read_interval,
    .opened = start_counters,
    .close = stop_counters,
    .reset_in_child = reset_counters_in_child,
};

}  // namespace paceline::inject
