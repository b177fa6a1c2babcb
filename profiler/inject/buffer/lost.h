// Stretches of time in which events are dropped. While a stretch lasts it is an entry of a table in the file
// (format/layout.h), so that the file of a killed process shows it too.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"
#include "profiler/format/layout.h"

namespace paceline::inject {

// Called after the file was mapped.
void start_lost();

// Adds `events` to the stretch of lost events of the calling thread and sets the end of the stretch to now. A new
// stretch begins at `first` (absolute ticks), or now if that is 0. A stretch has one cause.
void note_lost(format::DropCause cause, std::uint64_t events, std::uint64_t first = 0);

// Writes a `lost` event at `now` (absolute ticks) into the chunk that this thread has just opened. It counts the events
// that were lost since the previous chunk.
void record_lost(std::uint64_t now);

// Called when the thread ends. The drain writes what the thread has lost.
void leave_lost();

// --- called by the drain

// Notes that a chunk's events were lost because the disk did not take them.
void note_lost_by_disk(const format::ChunkHeader& chunk, std::uint64_t first_ticks, std::uint64_t last_ticks,
                       std::uint64_t events);
// Writes the losses of threads that have ended and of the disk; with `all`, those of all threads. Returns false if the
// disk does not take them.
bool write_lost(bool all);

}  // namespace paceline::inject
