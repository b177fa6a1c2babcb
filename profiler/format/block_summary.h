// The summary in a block's header: times, counts and contents, so that a reader can skip the rest of the block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiler/format/event_table.h"
#include "profiler/format/layout.h"

namespace paceline::format {

// Fills in the summary of `count` slots of whole events. Cost: linear in events.
inline void summarize(const Slot* slots, std::size_t count, BlockHeader& header) {
  constexpr std::uint64_t longest = std::uint64_t{1} << 55;  // a longer duration is damage
  std::uint32_t of_type[256] = {};
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
  for (std::size_t at = 0; at < count; at += 1 + extension_slots(slots[at])) {
    const EventType type = type_of(slots[at]);
    const std::uint64_t ticks = ticks_of(slots[at]);
    ++of_type[static_cast<unsigned>(type)];
    first = std::min(first, ticks);
    const bool lasts = has_duration(type) && slots[at + 1].high < longest;
    last = std::max(last, lasts ? ticks + slots[at + 1].high : ticks);
  }
  header.first_ticks = std::min(first, last);
  header.last_ticks = last;
  std::uint32_t of_family[families] = {};
  header.contents = 0;
  for (unsigned type = 0; type < 256; ++type) {
    if (of_type[type] == 0) continue;
    of_family[static_cast<std::size_t>(family_of(static_cast<EventType>(type)))] += of_type[type];
    header.contents |= content_of(static_cast<EventType>(type));
  }
  for (std::size_t family = 0; family < families; ++family) {
    header.count[family] = static_cast<std::uint16_t>(of_family[family]);
  }
}

}  // namespace paceline::format
