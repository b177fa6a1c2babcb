// Events that a program submits later, with time stamps of its own (NVTX's deferred events): the events as payloads,
// and what ties their clocks to the recorder's.
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

// A schema's time stamps are in this time domain: where it is a clock of the system, it is compared with the
// recorder's now and at later submissions.
void note_time_domain(std::uint64_t time_domain);

// Takes the payload extension's slots for scopes, time domains and deferred events.
void fill_deferred(const ExtensionSlots& slots);

// Lets go of a lock that another thread of the parent may have held.
void reset_deferred_in_child();

}  // namespace paceline::inject
