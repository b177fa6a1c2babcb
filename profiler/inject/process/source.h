// SPDX-License-Identifier: Apache-2.0
// An event source, as the recorder's core sees it: functions that the core calls at fixed moments. A source puts events
// into the trace through writer.h and names.h, whenever the program calls it. It lists itself in sources/sources.def.
//
// The hooks of all sources are called in the order of that table. A hook that is null is not called. None of them is on
// the path of an event.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace paceline::inject {

struct Source {
  // Once in a process that is recorded, before its first file is made: reads the environment.
  void (*start)() = nullptr;
  // For each file of the process. The file exists, but events are not accepted yet.
  void (*open)() = nullptr;
  // For each file. Events are accepted, and the drain runs.
  void (*opened)() = nullptr;
  // A text received a number (names.h), and no event with that number has been written yet. Called while the lock of
  // the names is held: it must not call intern().
  void (*name_added)(std::uint32_t id, std::string_view text) = nullptr;
  // Called on the drain's thread before it sleeps. Returns the time of the next call (CLOCK_MONOTONIC, ns), or `never`;
  // the drain may call earlier. A slow tick delays the drain.
  std::int64_t (*tick)(std::int64_t now_ns) = nullptr;
  // The recording is about to end; events are still accepted.
  void (*close)() = nullptr;
  // The last event is written, and the file is still open.
  void (*closed)() = nullptr;

  // Before a fork, in the thread that forks.
  void (*before_fork)() = nullptr;
  // In each forked child, recorded or not, before fork() returns. It must be safe in a signal handler.
  void (*forked)() = nullptr;
  // In a forked child that is about to open a file of its own. Resets locks that another thread of the parent may have
  // held, and state that is valid for the parent only.
  void (*reset_in_child)() = nullptr;
  // In the same child, after `opened`. Repeats definitions that later events refer to.
  void (*opened_in_child)() = nullptr;
};

// The table, defined with the sources.
extern const std::span<const Source* const> sources;

// Calls one hook of all sources.
template <class... Parameters, class... Arguments>
void call_sources(void (*Source::*hook)(Parameters...), Arguments... arguments) {
  for (const Source* source : sources) {
    if (source->*hook != nullptr) (source->*hook)(arguments...);
  }
}

}  // namespace paceline::inject
