// SPDX-License-Identifier: Apache-2.0
// Writes finished chunks to the file: no thread writes into them any longer. A chunk is identified by the number of its
// first page. Only the drain thread calls these functions, or the thread that finishes the drain's work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "profiler/format/event_table.h"
#include "profiler/format/layout.h"

namespace paceline::inject {

// Must be called before the other functions.
void start_chunk_writer();

// Appends the chunk's events to the file as a block. Returns false and sets errno if the disk did not take it (EFBIG:
// the file has reached its largest size). The chunk then stays as it was.
bool write_chunk(std::uint32_t number);

// Appends the chunk's events from `first_ticks` on, and those before that a flight recorder must keep
// (format::outlives_ring). Returns false as above, and true if there are none.
bool write_chunk_from(std::uint32_t number, std::uint64_t first_ticks);
// Appends only the events that a flight recorder must keep.
inline bool write_definitions(std::uint32_t number) { return write_chunk_from(number, ~std::uint64_t{0}); }

// Appends the losses of threads that have ended and of the disk; with `all`, those of all threads (buffer/lost.h).
// Returns false as above.
bool write_lost_events(bool all);

// Number of events in the chunk, and the ticks of its first and last one, 0 if it has none. The losses that the chunk
// itself records, by cause, are no events. Cost: linear.
struct ChunkSummary {
  std::uint64_t events = 0, first_ticks = 0, last_ticks = 0;
  std::array<std::uint64_t, 8> lost{};
};
ChunkSummary summarize_chunk(std::uint32_t number);

}  // namespace paceline::inject
