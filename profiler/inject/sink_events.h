// Gives events as structs (profiler/format/events.h) to the table of event_sink.h.
#pragma once

#include <array>

#include "profiler/format/events.h"
#include "profiler/inject/event_sink.h"

namespace paceline::inject {

namespace events = format::events;

// The words of the event's extension slots, in the order that the table takes them.
template <class Event>
constexpr auto sink_words(const Event& event) {
  std::array<std::uint64_t, 2 * (format::packed_slots<Event> - 1)> words{};
  for (unsigned word = 0; word < words.size(); ++word) words[word] = format::packed_word(event, word + 1);
  return words;
}

template <class Event>
inline void emit_to(const paceline_event_sink_v1& sink, std::uint64_t at_ticks, const Event& event) {
  const auto words = sink_words(event);
  sink.emit(at_ticks, static_cast<std::uint32_t>(Event::type), format::packed_word(event, 0), words.data(),
            words.size() / 2);
}

template <class Event>
inline void define_in(const paceline_event_sink_v1& sink, const Event& event) {
  const auto words = sink_words(event);
  sink.define(static_cast<std::uint32_t>(Event::type), format::packed_word(event, 0), words.data(), words.size() / 2);
}

}  // namespace paceline::inject
