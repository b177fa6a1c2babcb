// SPDX-License-Identifier: Apache-2.0
// Gives events as structs (profiler/format/events.h) to the table of event_sink.h.
#pragma once

#include "profiler/format/events.h"
#include "profiler/inject/event_sink.h"

namespace paceline::inject {

namespace events = format::events;

template <class Event>
inline void emit_to(const paceline_event_sink_v1& sink, std::uint64_t at_ticks, const Event& event) {
  const auto words = format::words_of(event);
  sink.emit(at_ticks, static_cast<std::uint32_t>(Event::type), words[0], words.data() + 1, words.size() / 2);
}

template <class Event>
inline void define_in(const paceline_event_sink_v1& sink, const Event& event) {
  const auto words = format::words_of(event);
  sink.define(static_cast<std::uint32_t>(Event::type), words[0], words.data() + 1, words.size() / 2);
}

}  // namespace paceline::inject
