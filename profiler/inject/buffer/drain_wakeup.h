// SPDX-License-Identifier: Apache-2.0
// What a thread has to know of the drain (process/drain.h): whether it runs, and how to wake it.
#pragma once

#include <atomic>
#include <cstdint>

namespace paceline::inject {

struct DrainState {
  std::atomic<std::uint32_t> wakeups{0};  // the number of wake-ups; the drain sleeps on it
  std::atomic<bool> sleeping{false};
  std::atomic<bool> runs{false};  // there is a thread that frees chunks
};
extern DrainState drain_state;

// True while there is a thread that frees chunks.
inline bool drain_runs() { return drain_state.runs.load(std::memory_order_relaxed); }

// Lock-free. Makes a system call only if the drain sleeps.
void wake_drain();
// The same without a look at `sleeping`: always makes the system call. Both are safe in a signal handler.
void wake_drain_surely();

}  // namespace paceline::inject
