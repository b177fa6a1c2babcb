// SPDX-License-Identifier: Apache-2.0
// The live area's chunks: whole units, pages of divided units, and the reserve.
//
// A thread begins with a page and continues with whole units. Unit 0 is the table of lost stretches (lost.h). The next
// units are the reserve: they are divided into pages from the beginning, and their pages are for events that others
// depend on (Priority in writer.h), so that the outer ranges survive an overload. The thread that needs a page divides
// a unit, and the drain joins the pages again when all of them are free.
//
// A unit gets space on the disk when it is used for the first time, so that a short recording costs little. The drain
// keeps some units ready ahead of their use, and a thread that finds none allocates one itself.
//
// A chunk's number is that of its first page.
#pragma once

#include <cstdint>

#include "profiler/format/layout.h"
#include "profiler/inject/buffer/session.h"

namespace paceline::inject {

inline constexpr std::uint32_t no_chunk = PageSet::none;
inline constexpr std::uint32_t lost_table_unit = 0;

// The number of units for a buffer of `live_bytes`, with the reserve and the table.
std::uint32_t units_for(std::size_t live_bytes);

// The number of units of the reserve in a file of `units` units.
constexpr std::uint32_t reserve_units(std::uint32_t units) {
  return units / 32 < 1 ? 1 : units / 32 > 8 ? 8 : units / 32;
}

// The units that have space when the file is created: the table and the first one of the reserve.
inline constexpr std::uint32_t units_at_start = 2;

// After the file was mapped, before any chunk is taken.
void start_chunks();

bool is_whole(std::uint32_t chunk);
std::size_t bytes_of(std::uint32_t chunk);
std::uint32_t slots_of_chunk(std::uint32_t chunk);
std::uint32_t number_of(const format::ChunkHeader* chunk);

// Take a free chunk, or return no_chunk. Lock-free.
std::uint32_t take_unit();
std::uint32_t take_page();
std::uint32_t take_reserve();
// True for a page of the reserve.
bool is_of_reserve(std::uint32_t chunk);
// Returns true if more than `quarters` quarters of the reserve are free. Always returns true for 0.
bool reserve_has_more_than(std::uint32_t quarters);

// Called by the drain. Zeroes the chunk, gives it back to the threads and wakes those that wait for one.
void set_free(std::uint32_t chunk);
// Units that are ready to be taken.
std::uint32_t ready_units();
// Joins the pages of divided units whose pages are all free.
void join_pages();

// Allocates disk space and memory of a unit that was never used, and makes the unit available. Returns false if there
// is none or the disk is full.
bool populate_chunk();
// Called by the drain. Populates one more unit if few are ready for the number that is in use, so that it is ahead of a
// program that emits more and more. A program that has used its first units also gets the whole reserve. Returns false
// if there is nothing to do. The first access to 16 MiB of a file takes tens of milliseconds.
bool populate_ahead();

// Waits until the drain has freed a chunk, for 10 ms at most. `seen`: session.freed before the caller found none.
void wait_for_free(std::uint32_t seen);

// Calls visit(chunk) for each chunk that holds events.
template <typename Visit>
void for_each_used_chunk(Visit&& visit) {
  for (std::uint32_t unit = lost_table_unit + 1; unit < session.file.chunks; ++unit) {
    if (!session.allocated.holds(unit)) continue;
    const std::uint32_t first = unit * format::pages_per_chunk;
    const std::uint32_t step = is_whole(first) ? format::pages_per_chunk : 1;
    for (std::uint32_t chunk = first; chunk < first + format::pages_per_chunk; chunk += step) {
      if (std::atomic_ref<std::uint32_t>(session.file.chunk_at(chunk)->state).load(std::memory_order_acquire) !=
          static_cast<std::uint32_t>(format::ChunkState::free)) {
        visit(chunk);
      }
    }
  }
}

}  // namespace paceline::inject
