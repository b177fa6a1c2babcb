// SPDX-License-Identifier: Apache-2.0
// The values of events: definitions, the clock, the course of the recording, counters. See events.h.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"

namespace paceline::format::events {

// Definitions.

// Gives a string its id, from 1 on; 0 is the empty string. The string's bytes follow.
struct Name {
  static constexpr EventType type = EventType::name;
  std::uint32_t id = 0;
  std::uint32_t bytes = 0;
};

// An NVTX domain. 0 is the default domain.
struct Domain {
  static constexpr EventType type = EventType::domain;
  std::uint16_t domain = 0;
  std::uint16_t unused = 0;
  std::uint32_t name = 0;
};

// An NVTX category of a domain.
struct Category {
  static constexpr EventType type = EventType::category;
  std::uint16_t domain = 0;
  std::uint16_t unused = 0;
  std::uint32_t category = 0;
  std::uint32_t name = 0;
  std::uint32_t unused2[3] = {};
};

// Names the track of a thread.
struct ThreadName {
  static constexpr EventType type = EventType::thread_name;
  std::uint32_t unused = 0;
  std::uint32_t name = 0;
  std::uint64_t thread_id = 0;  // the system's
  std::uint64_t unused2 = 0;
};

struct Communicator {
  static constexpr EventType type = EventType::communicator;
  std::uint32_t communicator = 0;
  std::uint32_t size = 0;      // of this process's own group
  std::uint64_t identity = 0;  // equal on all members, different from that of every other communicator
  std::uint32_t rank = 0;      // of this process in it
  std::uint32_t name = 0;
};

// The clock, and how the recording went.

// What the system's clocks showed at the head's ticks.
struct ClockPair {
  static constexpr EventType type = EventType::clock_pair;
  std::int64_t realtime_ns = 0;
  std::int64_t monotonic_raw_ns = 0;
  std::uint64_t width = 0;  // ticks that reading both took
};

// One round trip to another process. The head's ticks are those of sending.
struct ClockExchange {
  static constexpr EventType type = EventType::clock_exchange;
  std::int32_t peer_rank = 0;
  std::uint32_t phase = 0;           // 0 = at MPI_Init, 1 = at MPI_Finalize, 2 = between
  std::uint64_t received_ticks = 0;  // absolute, by this process's clock
  std::uint64_t peer_ticks = 0;      // absolute, by the peer's clock
};

// A fact that was learned while running.
struct Setting {
  static constexpr EventType type = EventType::setting;
  std::uint32_t key = 0;    // a name
  std::uint32_t value = 0;  // a name
};

struct Recording {
  static constexpr EventType type = EventType::recording;
  std::uint64_t reasons = 0;  // PauseReason bits for which the recording is off from here on; 0 = it is on
};

// The flight recorder wrote out what it held.
struct Trigger {
  static constexpr EventType type = EventType::trigger;
  TriggerCause cause = TriggerCause::signal;
  std::uint64_t number : 56 = 0;  // of the iteration, the signal or the seconds; 0 = none
  std::uint64_t kept_from = 0;    // from this tick on no event is missing
  std::uint64_t unused = 0;
};

// Events of this track were dropped between two times.
struct Lost {
  static constexpr EventType type = EventType::lost;
  std::uint8_t cause = 0;  // DropCause
  LostScope scope = LostScope::track;
  std::uint64_t events : 48 = 0;
  std::uint64_t first_ticks = 0;  // relative, as in heads
  std::uint64_t last_ticks = 0;
};

// The last event of a process that ended by itself.
struct ProcessEnd {
  static constexpr EventType type = EventType::process_end;
  std::uint64_t status = 0;  // its exit status, 0 to 255; 0 too where it is not known, as after quick_exit
};

// Stacks of threads.

// A stack: a function, and the stack that called it. It comes before the stacks and samples that refer to it.
struct Stack {
  static constexpr EventType type = EventType::stack;
  std::uint32_t stack = 0;     // from 1; 0 is the empty stack
  std::uint32_t caller = 0;    // a stack
  std::uint32_t function = 0;  // a name
  std::uint32_t file = 0;      // a name: the source file; 0 = not known
  std::uint32_t line = 0;      // that was executed; 0 = not known
  std::uint32_t unused = 0;
};

// What a thread was doing at the head's ticks. Of a thread that was blocked, the innermost function is the system call
// in brackets ("[read]"), and its file is the one that the call concerns.
struct StackSample {
  static constexpr EventType type = EventType::stack_sample;
  std::uint32_t thread_id = 0;  // the system's
  std::uint32_t stack = 0;
  std::uint64_t period_ns = 0;  // the time that the sample stands for; 0 = it was taken because of a hang
  std::uint64_t unused = 0;
};

// Counters.

struct Counter {
  static constexpr EventType type = EventType::counter;
  std::uint16_t counter = 0;
  CounterKind kind = CounterKind::level;
  std::uint32_t name = 0;
  std::uint32_t unit = 0;    // a name
  std::uint32_t device = 0;  // a name; 0 = none
  std::uint64_t unused = 0;
};

// Samples of one moment have the same ticks.
struct Sample {
  static constexpr EventType type = EventType::sample;
  std::uint32_t counter = 0;
  std::uint32_t unused = 0;
  std::int64_t value = 0;  // in the counter's unit
  std::uint64_t unused2 = 0;
};

}  // namespace paceline::format::events
