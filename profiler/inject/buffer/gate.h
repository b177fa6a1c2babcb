// SPDX-License-Identifier: Apache-2.0
// Whether this process has a file and records events.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/format/layout.h"

namespace paceline::inject {

// A page of its own. MADV_WIPEONFORK sets it to zero in a child of fork, so the child never writes to its parent's
// file.
struct alignas(format::page_bytes) Gate {
  std::atomic<std::uint32_t> on{0};         // events are recorded
  std::atomic<std::uint32_t> open{0};       // there is a file: definitions are recorded even while `on` is 0
  std::atomic<std::uint32_t> accepting{0};  // chunks are handed out; still 1 for the last events after `open` became 0
  std::atomic<std::uint32_t> source_flags[8] = {};  // of the event sources (sources/flags.h)
};
extern Gate gate;

// What a thread that finds the gate closed has to do about the file.
enum class FileState : std::uint32_t {
  settled,   // nothing: it is open, or it was closed, or there will be none
  unopened,  // open_recorder() opens it
  in_child,  // the next event opens it: this is a child of fork that will be recorded
  opening,   // another thread opens it
};
extern std::atomic<FileState> file_state;
// Opens the file of a child, or waits until another thread has opened the file. Returns true if there is one.
//
// A signal handler that emits may call this while it interrupts the program anywhere, for example while its thread
// holds a lock of the C library that the opening needs. So the wait ends after 2 s, no second thread waits that long,
// and the events until the file is open are counted as dropped.
bool open_or_await();

// True while there is a file: definitions go there even while recording is switched off.
inline bool file_is_open() {
  if (gate.open.load(std::memory_order_acquire) != 0) return true;
  return file_state.load(std::memory_order_relaxed) != FileState::settled && open_or_await();
}
// True while events are recorded. One relaxed load.
inline bool recording() {
  if (gate.on.load(std::memory_order_relaxed) != 0) [[likely]]
    return true;
  return file_state.load(std::memory_order_relaxed) != FileState::settled && open_or_await() &&
         gate.on.load(std::memory_order_relaxed) != 0;
}

}  // namespace paceline::inject
