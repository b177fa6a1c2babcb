// SPDX-License-Identifier: Apache-2.0
// Turns events into slots and back. The structs of events_*.h, one for each row of event_table.h, are the events.
//
//   using namespace paceline::format;
//   const auto slots = pack(ticks, events::MpiBeginPeer{.function = 71, .tag = 3, .bytes = 4096, .communicator = 1});
//   if (type_of(head) == EventType::mpi_begin_peer) bytes += unpack<events::MpiBeginPeer>(&head).bytes;
//
// The bytes of a struct are the event's words (event_words) from `low` on, so both directions are copies.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "profiler/format/event_table.h"

namespace paceline::format {

static_assert(std::endian::native == std::endian::little);

template <class Event>
using EventWords = std::array<std::uint64_t, sizeof(Event) / sizeof(std::uint64_t)>;

// The event's words.
template <class Event>
constexpr EventWords<Event> words_of(const Event& event) {
  return std::bit_cast<EventWords<Event>>(event);
}

// The slots of the event; of a type with bytes the head alone.
template <class Event>
using Packed = std::array<Slot, (std::tuple_size_v<EventWords<Event>> + 1) / 2>;

// `ticks` are relative to the header's start_ticks.
template <class Event>
constexpr Packed<Event> pack(std::uint64_t ticks, const Event& event) {
  const EventWords<Event> words = words_of(event);
  Packed<Event> slots{Slot{pack_high(ticks, Event::type), words[0]}};
  for (std::size_t i = 1; i < slots.size(); ++i) slots[i] = {words[2 * i - 1], words[2 * i]};
  return slots;
}

// The event at `head`, which has the type of `Event` and is followed by its extension slots.
template <class Event>
constexpr Event unpack(const Slot* head) {
  EventWords<Event> words{head->low};
  for (std::size_t i = 1; i < words.size(); i += 2) {
    ++head;
    words[i] = head->high;
    words[i + 1] = head->low;
  }
  return std::bit_cast<Event>(words);
}

}  // namespace paceline::format
