// SPDX-License-Identifier: Apache-2.0
// Writes events given as structs (profiler/format/events.h) instead of as slots.
//
//   if (recording()) emit(events::MpiPosted{.request = number});
#pragma once

#include <tuple>

#include "profiler/format/events.h"
#include "profiler/inject/buffer/definitions.h"
#include "profiler/inject/buffer/writer.h"

namespace paceline::inject {

namespace events = format::events;

namespace emitting {
// Calls put(low, extension...) with the words of the event.
template <class Event, class Put>
inline bool with_slots(const Event& event, Put&& put) {
  return std::apply([&](const format::Slot& head, const auto&... extension) { return put(head.low, extension...); },
                    format::pack(0, event));
}
}  // namespace emitting

// As emit() of slots.
template <class Event>
inline bool emit(const Event& event) {
  return emitting::with_slots(event, [](auto... words) { return emit(Event::type, words...); });
}

// As emit_at() of slots: `ticks` are absolute.
template <class Event>
inline bool emit_at(std::uint64_t ticks, const Event& event) {
  return emitting::with_slots(event, [&](auto... words) { return emit_at(ticks, Event::type, words...); });
}

// As emit_surely() of slots.
template <class Event>
inline bool emit_surely(const Event& event) {
  const format::Packed<Event> slots = format::pack(0, event);
  return emit_surely(Event::type, slots[0].low, std::span(slots).subspan(1));
}

}  // namespace paceline::inject
