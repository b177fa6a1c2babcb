// SPDX-License-Identifier: Apache-2.0
// The values of events: what the scheduler did with the process's threads. See events.h.
//
// The drain reads all of this from outside the threads, so these events are on its track and name the thread that they
// are about. Their ticks may be lower than those of the events before them.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::format::events {

// A thread was found: the events below are about it from here on. A thread that ended and another one that has the same
// number later are two threads.
struct ThreadFound {
  static constexpr EventType type = EventType::thread_found;
  std::uint32_t thread = 0;  // the system's thread id
  std::uint32_t unused = 0;
  char name[16] = {};  // the system's name of the thread, padded with zeros
};

// The thread does this from here on.
struct ThreadSwitch {
  static constexpr EventType type = EventType::thread_switch;
  std::uint32_t thread = 0;
  ThreadState state = ThreadState::unknown;
  std::uint8_t unused[3] = {};
};

// What the system counted for the thread since it began. The time that a thread waits for a CPU counts when it gets
// one.
struct ThreadTimes {
  static constexpr EventType type = EventType::thread_times;
  std::uint32_t thread = 0;
  std::uint32_t unused = 0;
  std::uint64_t running_ns = 0;  // on a CPU
  std::uint64_t waiting_ns = 0;  // ready to run, without a CPU
};

// Another program used the machine's CPUs while threads of this process waited for one. The interval ends at the ticks.
struct OtherProgram {
  static constexpr EventType type = EventType::other_program;
  std::uint32_t process = 0;  // its process id
  std::uint32_t unused = 0;
  char name[16] = {};  // the system's name of the program, padded with zeros
  std::uint64_t cpu_ns = 0;
  std::uint64_t interval_ns = 0;
};

}  // namespace paceline::format::events
