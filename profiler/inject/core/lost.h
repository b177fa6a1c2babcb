// Stretches in which events are dropped, kept in the file's table of them while they last (format/layout.h), so that a
// process that is killed meanwhile has said when it lost something.
#pragma once

#include <cstdint>

#include "profiler/format/event.h"
#include "profiler/format/layout.h"

namespace paceline::inject {

// After the file was mapped.
void start_lost();

// Adds `events` to the stretch of lost events of the calling thread, which ends now.
void note_lost(std::uint64_t events);

// In a chunk that this thread has just opened: says what was lost since the chunk before, by an event at `now`,
// absolute.
void say_lost(std::uint64_t now);

// The thread ends: the drain says what it lost.
void leave_lost();

// --- by the drain

// A chunk's events were lost because the disk did not take them.
void note_lost_by_disk(const format::ChunkHeader& chunk, std::uint64_t first_ticks, std::uint64_t last_ticks,
                       std::uint64_t events);
// Writes out what threads that have ended lost, and what the disk did not take; `all`: of all threads. False: the disk
// does not take it.
bool write_lost(bool all);

}  // namespace paceline::inject
