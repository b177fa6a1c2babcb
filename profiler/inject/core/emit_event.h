// Writes events given as structs (profiler/format/events.h) instead of as slots.
//
//   if (recording()) emit(events::MpiPosted{.request = number});
#pragma once

#include <utility>

#include "profiler/format/events.h"
#include "profiler/inject/core/writer.h"

namespace paceline::inject {

namespace events = format::events;

namespace emitting {
template <class Event>
using Extensions = std::make_integer_sequence<unsigned, format::packed_slots<Event> - 1>;
}  // namespace emitting

// As emit() of slots.
template <class Event>
inline bool emit(const Event& event) {
  return [&]<unsigned... slot>(std::integer_sequence<unsigned, slot...>) {
    return emit(Event::type, format::packed_word(event, 0), format::packed_extension(event, slot)...);
  }
  (emitting::Extensions<Event>());
}

// As emit_at() of slots: `ticks` are absolute.
template <class Event>
inline bool emit_at(std::uint64_t ticks, const Event& event) {
  return [&]<unsigned... slot>(std::integer_sequence<unsigned, slot...>) {
    return emit_at(ticks, Event::type, format::packed_word(event, 0), format::packed_extension(event, slot)...);
  }
  (emitting::Extensions<Event>());
}

// As emit_surely() of slots.
template <class Event>
inline bool emit_surely(const Event& event) {
  const format::Packed<Event> slots = format::pack(0, event);
  return emit_surely(Event::type, slots[0].low, std::span(slots).subspan(1));
}

}  // namespace paceline::inject
