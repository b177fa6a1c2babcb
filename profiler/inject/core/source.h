// What the recorder's core knows of an event source: functions that it calls at fixed moments. A source puts events
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
  // For each file of the process. The file is there, and events are not accepted yet.
  void (*open)() = nullptr;
  // For each file. Events are accepted, and the drain runs.
  void (*opened)() = nullptr;
  // A text has got a number (names.h), and no event with that number is written yet. Called with the lock of the names
  // held: it must not call intern().
  void (*name_added)(std::uint32_t id, std::string_view text) = nullptr;
  // By the drain's thread, whenever it wakes up, but not often enough to rely on: returns when it wants to be called at
  // the latest (CLOCK_MONOTONIC, ns), or `never`. What it does delays the drain.
  std::int64_t (*tick)(std::int64_t now_ns) = nullptr;
  // The recording is about to end; events are still accepted.
  void (*close)() = nullptr;
  // The last event is written, and the file is still open.
  void (*closed)() = nullptr;

  // Before a fork, in the thread that forks.
  void (*before_fork)() = nullptr;
  // In each forked child, recorded or not, before fork() returns: only what is safe in a signal handler.
  void (*forked)() = nullptr;
  // In a forked child that is about to open a file of its own: lets go of locks that another thread of the parent may
  // have held, and forgets what holds for the parent only.
  void (*reset_in_child)() = nullptr;
  // In such a child, after `opened`: repeats definitions that later events refer to.
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
