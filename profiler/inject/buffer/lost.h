// SPDX-License-Identifier: Apache-2.0
// Stretches of time in which events are dropped. While a stretch lasts it is an entry of a table in the file
// (format/layout.h), so that the file of a killed process shows it too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/format/event.h"
#include "profiler/format/event_table.h"
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
void release_lost_entry();

// Adds to the counters of the file's header.
void count_dropped(format::DropCause cause, std::uint64_t events = 1);

// Notes and counts an event for which the calling thread found no room.
void drop_event();

// The same for an event of a signal handler that interrupted another event. It is noted when the other
// event is complete, by count_nested_drops().
void drop_nested_event();
void count_nested_drops();

// --- called by the drain

// Notes that a chunk's events were lost because the disk did not take them.
void note_lost_by_disk(const format::ChunkHeader& chunk, std::uint64_t first_ticks, std::uint64_t last_ticks,
                       std::uint64_t events);
// Passes the losses of threads that have ended and of the disk to `write`, as slots of whole events; with `all`, those
// of all threads. Returns false if `write` does, which keeps that loss.
using WriteSlots = bool(const format::ChunkHeader& chunk, const format::Slot* slots, std::size_t count);
bool write_lost(bool all, WriteSlots* write);

}  // namespace paceline::inject
