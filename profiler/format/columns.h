// SPDX-License-Identifier: Apache-2.0
// What the encoder and the decoder of blocks share: both go through the events of a block type by type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "profiler/format/event_table.h"

namespace paceline::format {

inline constexpr std::uint64_t ticks_mask = (std::uint64_t{1} << 56) - 1;

// Puts the heads of all events of one type into `into`, which has room for all of them, and returns their number. A
// block has few types: a walk over all events for each of them costs less than sorting the heads, because no step waits
// for another one's result. It looks at eight events at once.
inline std::size_t pick_type(const std::uint8_t* types, const std::uint16_t* heads, std::size_t events, EventType type,
                             std::uint16_t* into) {
  constexpr std::uint64_t each_byte = 0x0101'0101'0101'0101, low_bits = 0x7f * each_byte;
  const std::uint64_t wanted = static_cast<std::uint8_t>(type) * each_byte;
  std::size_t found = 0, at = 0;
  for (; at + 8 <= events; at += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, types + at, sizeof eight);
    const std::uint64_t differs = eight ^ wanted;
    // The top bit of each byte that is 0, and so of the wanted type.
    std::uint64_t hits = ~(((differs & low_bits) + low_bits) | differs | low_bits);
    for (; hits != 0; hits &= hits - 1) into[found++] = heads[at + static_cast<unsigned>(std::countr_zero(hits)) / 8];
  }
  for (; at < events; ++at) {
    if (types[at] == static_cast<std::uint8_t>(type)) into[found++] = heads[at];
  }
  return found;
}

}  // namespace paceline::format
