// SPDX-License-Identifier: Apache-2.0
// The summary in a block's header: times, counts and contents, so that a reader can skip the rest of the block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "profiler/format/event_table.h"
#include "profiler/format/layout.h"

namespace paceline::format {

// Gathers the summary of a block, event by event.
struct BlockSummary {
  std::uint32_t of_type[256] = {};
  std::uint64_t first_ticks = ~std::uint64_t{0}, last_ticks = 0;

  void add(unsigned type, std::uint64_t ticks) {
    ++of_type[type];
    first_ticks = std::min(first_ticks, ticks);
    last_ticks = std::max(last_ticks, ticks);
  }
  // For an event of a type that has a duration.
  void add_duration(const Slot* head) { last_ticks = std::max(last_ticks, end_ticks(head)); }
  void store(BlockHeader& header) const {
    header.first_ticks = std::min(first_ticks, last_ticks);
    header.last_ticks = last_ticks;
    std::uint32_t of_family[families] = {};
    header.contents = 0;
    for (const EventInfo& info : event_table) {
      const std::uint32_t events = of_type[static_cast<unsigned>(info.type)];
      if (events == 0) continue;
      of_family[static_cast<std::size_t>(info.family)] += events;
      header.contents |= info.contents;
    }
    for (std::size_t family = 0; family < families; ++family) {
      header.count[family] = static_cast<std::uint16_t>(of_family[family]);
    }
  }
};

// Fills in the summary of `count` slots of whole events. Cost: linear in events.
inline void summarize(const Slot* slots, std::size_t count, BlockHeader& header) {
  BlockSummary summary;
  for (std::size_t at = 0; at < count; at += 1 + extension_slots(slots[at])) {
    summary.add(static_cast<unsigned>(type_of(slots[at])), ticks_of(slots[at]));
    if (has_duration(type_of(slots[at]))) summary.add_duration(slots + at);
  }
  summary.store(header);
}

}  // namespace paceline::format
