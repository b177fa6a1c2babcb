// Packs the values of an event into its slots, and unpacks them. The events themselves are in events.h.
//
// Each event is a struct with its `type` and a function `values()`, which lists its members and their places:
//
//   struct Setting {
//     static constexpr EventType type = EventType::setting;
//     std::uint32_t key = 0;
//     std::uint32_t value = 0;
//     static constexpr auto values() { return std::tuple(low(&Setting::key, 0), low(&Setting::value, 32)); }
//   };
//
// Bits that no value occupies are 0. Packing and unpacking compile to the shifts that one would write by hand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "profiler/format/event.h"
#include "profiler/format/event_table.h"

namespace paceline::format {

// The place of a value: bits of one of the event's words (event_words), from bit `shift` upward.
template <class Event, class Value>
struct Placed {
  Value Event::*member;
  unsigned word, shift, bits;
};

namespace events {
template <class E, class V>
constexpr Placed<E, V> low(V E::*member, unsigned shift, unsigned bits = 8 * sizeof(V)) {
  return {member, 0, shift, bits};
}
template <class E, class V>
constexpr Placed<E, V> ext_high(V E::*member, unsigned shift, unsigned bits = 8 * sizeof(V)) {
  return {member, 1, shift, bits};
}
template <class E, class V>
constexpr Placed<E, V> ext_low(V E::*member, unsigned shift, unsigned bits = 8 * sizeof(V)) {
  return {member, 2, shift, bits};
}
template <class E, class V>
constexpr Placed<E, V> ext2_high(V E::*member, unsigned shift, unsigned bits = 8 * sizeof(V)) {
  return {member, 3, shift, bits};
}
template <class E, class V>
constexpr Placed<E, V> ext2_low(V E::*member, unsigned shift, unsigned bits = 8 * sizeof(V)) {
  return {member, 4, shift, bits};
}
}  // namespace events

// The slots of an event; of a type with bytes the head alone.
template <class Event>
inline constexpr std::size_t packed_slots = 1 + (has_bytes(Event::type)
                                                     ? 0
                                                     : extension_counts[static_cast<unsigned>(Event::type)]);
template <class Event>
using Packed = std::array<Slot, packed_slots<Event>>;

namespace packing {
constexpr std::uint64_t mask(unsigned bits) { return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1; }

template <class Value>
constexpr std::uint64_t to_bits(Value value, unsigned bits) {
  return static_cast<std::uint64_t>(value) & mask(bits);
}
}  // namespace packing

// The event's word `word` (event_words).
template <class Event>
constexpr std::uint64_t packed_word(const Event& event, unsigned word) {
  std::uint64_t packed = 0;
  const auto add = [&](const auto& placed) {
    if (placed.word == word) packed |= packing::to_bits(event.*placed.member, placed.bits) << placed.shift;
  };
  std::apply([&](const auto&... placed) { (add(placed), ...); }, Event::values());
  return packed;
}

// The extension slot `number` of the event, from 0 on.
template <class Event>
constexpr Slot packed_extension(const Event& event, unsigned number) {
  return {packed_word(event, 2 * number + 1), packed_word(event, 2 * number + 2)};
}

// The slots of the event. `ticks` are relative to the header's start_ticks.
template <class Event>
constexpr Packed<Event> pack(std::uint64_t ticks, const Event& event) {
  Packed<Event> slots{};
  slots[0] = {pack_high(ticks, Event::type), packed_word(event, 0)};
  for (unsigned slot = 1; slot < slots.size(); ++slot) slots[slot] = packed_extension(event, slot - 1);
  return slots;
}

// The values of the event at `head`, which has the type of `Event` and is followed by its extension slots.
template <class Event>
constexpr Event unpack(const Slot* head) {
  Event event;
  const auto take = [&](const auto& placed) {
    using Value = std::remove_reference_t<decltype(event.*placed.member)>;
    const Slot& slot = head[(placed.word + 1) / 2];
    const std::uint64_t word = placed.word % 2 == 0 ? slot.low : slot.high;
    event.*placed.member = static_cast<Value>(word >> placed.shift & packing::mask(placed.bits));
  };
  std::apply([&](const auto&... placed) { (take(placed), ...); }, Event::values());
  return event;
}

}  // namespace paceline::format
