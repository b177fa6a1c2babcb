// SPDX-License-Identifier: Apache-2.0
// The columns of a block as docs/trace-format.md describes them, made in the simplest way: one event and one number
// after the other.
#pragma once

#include <cstring>
#include <vector>

#include "profiler/format/event_table.h"

namespace paceline::format::testing {

inline void append_column(std::vector<std::byte>& columns, const std::vector<std::byte>& column) {
  const auto length = static_cast<std::uint32_t>(column.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(&length);
  columns.insert(columns.end(), bytes, bytes + sizeof length);
  columns.insert(columns.end(), column.begin(), column.end());
}

inline std::vector<std::byte> leb128(std::uint64_t value) {
  std::vector<std::byte> bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>((value & 0x7f) | 0x80));
  bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

// The columns of whole events, one after another, each after its length: what a block's payload holds decompressed.
inline std::vector<std::byte> reference_columns(const std::vector<Slot>& slots) {
  std::vector<const Slot*> events;
  for (std::size_t at = 0; at < slots.size(); at += 1 + extension_slots(slots[at])) events.push_back(&slots[at]);

  std::vector<std::byte> columns, types, planes[8];
  std::uint64_t before = 0;
  for (const Slot* event : events) {
    types.push_back(static_cast<std::byte>(type_of(*event)));
    const std::vector<std::byte> number = leb128((ticks_of(*event) - before) & ((std::uint64_t{1} << 56) - 1));
    for (std::size_t i = 0; i < number.size(); ++i) planes[i].push_back(number[i]);
    before = ticks_of(*event);
  }
  append_column(columns, types);
  for (const auto& plane : planes) append_column(columns, plane);

  for (unsigned type = 1; type < 256; ++type) {
    std::vector<const Slot*> of_type;
    for (const Slot* event : events) {
      if (static_cast<unsigned>(type_of(*event)) == type) of_type.push_back(event);
    }
    if (of_type.empty()) continue;
    for (const Field& field : fields_of(static_cast<EventType>(type))) {
      std::vector<std::byte> column;
      std::uint64_t last[series_keys] = {}, any = 0;
      for (const Slot* event : of_type) {
        const Slot& slot = event[(field.word + 1) / 2];
        const std::uint64_t word = field.word % 2 == 0 ? slot.low : slot.high;
        const std::uint64_t value = word >> field.shift & field_mask(field);
        std::uint64_t& of_key = last[field.coding == Coding::series ? event->low % series_keys : 0];
        const std::uint64_t coded = field.coding == Coding::plain ? value : zigzag(value - of_key);
        of_key = value;
        any |= coded;
        const std::vector<std::byte> number = leb128(coded);
        column.insert(column.end(), number.begin(), number.end());
      }
      if (any == 0) column.clear();
      append_column(columns, column);
    }
    if (!has_bytes(static_cast<EventType>(type))) continue;
    std::vector<std::byte> bytes;
    for (const Slot* event : of_type) {
      const auto* text = reinterpret_cast<const std::byte*>(event + 1);
      bytes.insert(bytes.end(), text, text + (event->low >> 32));
    }
    append_column(columns, bytes);
  }
  return columns;
}

}  // namespace paceline::format::testing
