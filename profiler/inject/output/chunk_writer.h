// Writes finished chunks to the file: no thread writes into them any longer. A chunk is identified by the number of its
// first page. Only the drain thread calls these functions, or the thread that finishes the drain's work.
#pragma once

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

// Appends slots of whole events as a block. Returns false as above.
bool write_slots(const format::ChunkHeader& chunk, const format::Slot* slots, std::size_t count);

// Appends the chunk's events from `first_ticks` on, and those before that a flight recorder must keep
// (format::outlives_ring). Returns false as above, and true if there are none.
bool write_chunk_from(std::uint32_t number, std::uint64_t first_ticks);
// Appends only the events that a flight recorder must keep.
inline bool write_definitions(std::uint32_t number) { return write_chunk_from(number, ~std::uint64_t{0}); }

// Prints one line in a recording: events are lost, because the disk does not take them.
void report_lost_events(int error);

// Writes the chunk, as write_chunk_from(), and frees it. Events that the disk does not take are counted, and one
// message reports them. When the file has reached its largest size, recording ends and the chunk stays in the live
// area.
void store_chunk(std::uint32_t number, std::uint64_t first_ticks = 0);

// Number of events in the chunk, and the ticks of its first and last one, 0 if it has none. Cost: linear.
struct ChunkSummary {
  std::uint64_t events = 0, first_ticks = 0, last_ticks = 0;
};
ChunkSummary summarize_chunk(std::uint32_t number);

}  // namespace paceline::inject
