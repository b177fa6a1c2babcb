// What becomes of a chunk (by the number of its first page) that no thread writes into any more. For the drain thread
// alone, and for whoever finishes its work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/format/event_table.h"
#include "profiler/format/layout.h"

namespace paceline::inject {

// Before the others.
void start_chunk_writer();

// Appends the chunk's events to the file as a block. False, and errno says why, if the disk did not take it (EFBIG:
// the file has its largest size); the chunk is as before.
bool write_chunk(std::uint32_t number);

// Appends slots of whole events as a block. False as above.
bool write_slots(const format::ChunkHeader& chunk, const format::Slot* slots, std::size_t count);

// The same for what a flight recorder must not forget (format::outlives_ring); true where there is nothing of it.
bool write_definitions(std::uint32_t number);

// Writes the chunk and sets it free. What the disk does not take is counted and said once; where the file has its
// largest size recording ends, and the chunk waits in the live area.
void store_chunk(std::uint32_t number);

// Number of events in the chunk, and the ticks of its first and last one, 0 if it has none. Cost: linear.
struct ChunkSummary {
  std::uint64_t events = 0, first_ticks = 0, last_ticks = 0;
};
ChunkSummary summarize_chunk(std::uint32_t number);

}  // namespace paceline::inject
