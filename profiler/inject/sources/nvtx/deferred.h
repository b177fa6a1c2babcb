// NVTX's deferred events: events that a program submits later, with timestamps of its own. The events are recorded as
// payloads, together with readings that relate their clocks to the recorder's.
#pragma once

#include <cstdint>

#include "profiler/inject/sources/nvtx/payload.h"

namespace paceline::inject {

// The function slots of one copy of NVTX for an extension.
struct ExtensionSlots {
  std::intptr_t* slots = nullptr;
  std::size_t count = 0;

  template <class Function>
  void fill(std::size_t id, Function* function) const {
    if (id < count) slots[id] = reinterpret_cast<std::intptr_t>(function);
  }
};

// Called for the time domain of a schema's timestamps. If it is a clock of the system, it is compared with the
// recorder's clock now and at later submissions.
void note_time_domain(std::uint64_t time_domain);

// Fills the payload extension's slots for scopes, time domains and deferred events.
void fill_deferred(const ExtensionSlots& slots);

// In a forked child: resets a lock that another thread of the parent may have held.
void reset_deferred_in_child();

}  // namespace paceline::inject
