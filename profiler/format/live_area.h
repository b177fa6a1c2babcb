// SPDX-License-Identifier: Apache-2.0
// Reads the live area of a .pace file: the chunks that threads write into, and the table of lost stretches.
#pragma once

#include <vector>

#include "profiler/format/events_recording.h"
#include "profiler/format/header_reader.h"

namespace paceline::format {

// The whole events of one chunk.
struct LiveChunk {
  std::uint32_t track = 0;
  std::uint64_t sequence = 0;
  std::uint64_t thread_id = 0;
  std::vector<Slot> slots;
};

struct LiveArea {
  std::vector<LiveChunk> chunks;     // in the order of the file
  std::vector<LostStretch> ongoing;  // of the table: an event `lost` may have reported them as well
};

// Reads it from a file of `size` bytes. A length out of range is set to 0 in `header`. Of a running process, a chunk
// that is set free while it is read is left out: its events are in a block by then, so the blocks are read afterwards.
LiveArea read_live_area(const InputFile& file, std::uint64_t size, FileHeader& header, DamageLog& damage);

// The stretch that an event `lost` on a track reports.
LostStretch lost_stretch(std::uint32_t track, std::uint64_t thread_id, const events::Lost& event);

}  // namespace paceline::format
