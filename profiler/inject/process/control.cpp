// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/control.h"

#include <pthread.h>

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/system/settings.h"

namespace paceline::inject {
namespace {

pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
std::atomic<std::uint32_t> reasons{0};
std::atomic<bool> unrecorded_change{false};              // no chunk was free to record the latest change
std::int64_t delay_ends = never, duration_ends = never;  // CLOCK_MONOTONIC; only the drain uses them once it runs
bool set_up = false;                                     // a child keeps its parent's state

bool record_state(std::uint64_t at, std::uint32_t state) { return emit_at(at, events::Recording{.reasons = state}); }

}  // namespace

void start_control(std::int64_t process_age_ns) {
  if (set_up) return;
  set_up = true;
  std::uint32_t off = 0;
  const std::int64_t now = system_ns(CLOCK_MONOTONIC);
  const std::int64_t left = settings.delay_ns - process_age_ns;
  if (left > 0) {
    off |= format::before_delay;
    delay_ends = now + left;
  } else if (settings.duration_ns > 0) {
    duration_ends = now + settings.duration_ns;
  }
  reasons.fetch_or(off, std::memory_order_relaxed);
}

void announce_control() {
  pthread_mutex_lock(&changing);
  const std::uint32_t now = reasons.load(std::memory_order_relaxed);
  if (now != 0) record_state(start_ticks, now);
  gate.on.store(now == 0, std::memory_order_release);
  pthread_mutex_unlock(&changing);
}

void set_pause(format::PauseReason reason, bool paused) {
  const ReentrancyGuard guard;
  const bool is_open = file_is_open();  // before the lock, because opening the file of a child takes it
  pthread_mutex_lock(&changing);
  const std::uint32_t before = reasons.load(std::memory_order_relaxed);
  const std::uint32_t after = paused ? before | reason : before & ~std::uint32_t{reason};
  reasons.store(after, std::memory_order_relaxed);
  if (before != after && is_open) {
    if (after != 0) gate.on.store(0, std::memory_order_relaxed);
    if (!record_state(ticks(), after)) unrecorded_change = true;
    if (after == 0) gate.on.store(1, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&changing);
}

bool set_recording(bool on) {
  const bool before = (reasons.load(std::memory_order_relaxed) & format::by_program) == 0;
  if (before != on) set_pause(format::by_program, !on);
  return before;
}

std::int64_t run_control(std::int64_t now_ns) {
  if (now_ns >= delay_ends) {
    delay_ends = never;
    if (settings.duration_ns > 0) duration_ends = now_ns + settings.duration_ns;
    set_pause(format::before_delay, false);
  }
  if (now_ns >= duration_ends) {
    duration_ends = never;
    set_pause(format::after_duration, true);
  }
  if (unrecorded_change.exchange(false)) {
    pthread_mutex_lock(&changing);
    if (!record_state(ticks(), reasons.load(std::memory_order_relaxed))) unrecorded_change = true;
    pthread_mutex_unlock(&changing);
  }
  return delay_ends < duration_ends ? delay_ends : duration_ends;
}

void reset_control_in_child() { pthread_mutex_init(&changing, nullptr); }

}  // namespace paceline::inject

// For programs that measure the recorder itself: turns recording on (1) or off (0) and returns its previous state. Call
// it only while no range is open. Found with dlsym(RTLD_DEFAULT, "paceline_recording").
extern "C" __attribute__((visibility("default"))) int paceline_recording(int on) {
  return paceline::inject::set_recording(on != 0) ? 1 : 0;
}
