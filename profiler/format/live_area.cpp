// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/live_area.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/format/block.h"

namespace paceline::format {
namespace {

class LiveAreaReader {
 public:
  LiveAreaReader(const InputFile& file, std::uint64_t size, DamageLog& damage)
      : file_(file), size_(size), damage_(damage) {}

  LiveArea read(FileHeader& header) {
    if (header.live_bytes % chunk_bytes != 0 || header.live_bytes > max_live_bytes) {
      damage_.add(fmt::format("the length of the live area, {} bytes, is out of range", header.live_bytes));
      header.live_bytes = 0;
    }
    const std::uint64_t end = header.header_bytes + header.live_bytes;
    for (std::uint64_t at = header.header_bytes; at < end; at += chunk_bytes) {
      ChunkHeader unit;
      if (at >= size_ || file_.read(at, &unit, sizeof unit) < sizeof unit) {
        note_cut();
        break;
      }
      read_unit(at, unit);
    }
    return std::move(area_);
  }

 private:
  void note_cut() { damage_.add(fmt::format("cut in the live area, at byte {}", size_)); }

  void read_unit(std::uint64_t at, ChunkHeader unit) {
    if (unit.state == static_cast<std::uint32_t>(ChunkState::lost_table)) {
      read_lost_table(at);
      return;
    }
    // A running process may divide a unit, or make it whole, while it is read.
    for (int attempt = 0; attempt < 3; ++attempt) {
      const std::uint32_t pages = unit.pages;
      if (pages > 1) {
        damage_.add(fmt::format("the chunk at byte {} has an unknown size", at));
        return;
      }
      const std::size_t before = area_.chunks.size();
      const std::size_t step = pages == 1 ? page_bytes : chunk_bytes;
      for (std::uint64_t chunk = at; chunk < at + chunk_bytes; chunk += step) read_chunk(chunk, step);
      if (file_.read(at, &unit, sizeof unit) < sizeof unit || unit.pages == pages) return;
      area_.chunks.resize(before);
    }
  }

  void read_chunk(std::uint64_t at, std::size_t bytes) {
    ChunkHeader chunk, after;
    if (file_.read(at, &chunk, sizeof chunk) < sizeof chunk) {
      note_cut();
      return;
    }
    if (chunk.state == static_cast<std::uint32_t>(ChunkState::free)) return;
    if (chunk.state > static_cast<std::uint32_t>(ChunkState::full)) {
      damage_.add(fmt::format("the chunk at byte {} has an unknown state", at));
      return;
    }
    LiveChunk live{chunk.track, chunk.sequence, chunk.thread_id, {}};
    const std::size_t slot_bytes = bytes - sizeof chunk;
    live.slots.resize(slot_bytes / sizeof(Slot));
    const std::size_t got = file_.read(at + sizeof chunk, live.slots.data(), slot_bytes);
    if (got < slot_bytes) note_cut();
    if (file_.read(at, &after, sizeof after) < sizeof after || after.state == 0 || after.sequence != chunk.sequence) {
      return;
    }
    live.slots.resize(got / sizeof(Slot));
    const std::size_t whole = whole_slots(live.slots.data(), live.slots.size());
    if (whole < live.slots.size() && live.slots[whole].high != 0 && got == slot_bytes) {
      damage_.add(fmt::format("the chunk at byte {} has a broken event in slot {}", at, whole));
    }
    live.slots.resize(whole);
    area_.chunks.push_back(std::move(live));
  }

  void read_lost_table(std::uint64_t at) {
    std::vector<LostEntry> entries(lost_entries);
    const std::size_t got = file_.read(at + sizeof(ChunkHeader), entries.data(), entries.size() * sizeof(LostEntry));
    if (got < entries.size() * sizeof(LostEntry)) note_cut();
    entries.resize(got / sizeof(LostEntry));
    for (const LostEntry& entry : entries) {
      if (entry.events == 0) continue;
      area_.ongoing.push_back(lost_stretch(entry.track, entry.thread_id,
                                           {.cause = static_cast<std::uint8_t>(entry.cause),
                                            .scope = static_cast<LostScope>(entry.cause >> 8 & 0xff),
                                            .events = entry.events,
                                            .first_ticks = entry.first_ticks,
                                            .last_ticks = entry.last_ticks}));
    }
  }

  const InputFile& file_;
  std::uint64_t size_;
  DamageLog& damage_;
  LiveArea area_;
};

}  // namespace

LiveArea read_live_area(const InputFile& file, std::uint64_t size, FileHeader& header, DamageLog& damage) {
  return LiveAreaReader(file, size, damage).read(header);
}

LostStretch lost_stretch(std::uint32_t track, std::uint64_t thread_id, const events::Lost& event) {
  LostStretch lost{track, thread_id, event.first_ticks, std::max(event.first_ticks, event.last_ticks), event.events};
  lost.cause = event.cause;
  lost.any_thread = event.scope == LostScope::any_thread;
  return lost;
}

}  // namespace paceline::format
