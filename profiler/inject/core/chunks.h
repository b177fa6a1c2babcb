// The live area's chunks: whole units, pages of divided units, and the reserve.
//
// A thread begins with a page and goes on with whole units. Unit 0 is the table of lost stretches (lost.h). The units
// after it are the reserve: they are divided from the beginning, and their pages are for events that others are
// understood by (recorder.h, Need), so that an overload leaves the outer ranges whole. A unit is divided by the thread
// that needs a page, and made whole again by the drain when all of its pages are free.
//
// A chunk's number is that of its first page.
#pragma once

#include <cstdint>

#include "profiler/format/layout.h"
#include "profiler/inject/core/session.h"

namespace paceline::inject {

inline constexpr std::uint32_t no_chunk = PageSet::none;
inline constexpr std::uint32_t lost_table_unit = 0;

// Units of the live area for a buffer of `live_bytes`, the reserve and the table included.
std::uint32_t units_for(std::size_t live_bytes);

// Of a file of `units` units.
constexpr std::uint32_t reserve_units(std::uint32_t units) {
  return units / 32 < 1 ? 1 : units / 32 > 8 ? 8 : units / 32;
}

// After the file was mapped, before any chunk is taken.
void start_chunks();

bool is_whole(std::uint32_t chunk);
std::size_t bytes_of(std::uint32_t chunk);
std::uint32_t slots_of_chunk(std::uint32_t chunk);
std::uint32_t number_of(const format::ChunkHeader* chunk);

// A free chunk, or no_chunk. Lock-free.
std::uint32_t take_unit();
std::uint32_t take_page();
std::uint32_t take_reserve();
// True of a page of the reserve.
bool is_of_reserve(std::uint32_t chunk);
// Returns true if more than `quarters` quarters of the reserve are free. Always returns true for 0.
bool reserve_has_more_than(std::uint32_t quarters);

// By the drain: zeroes the chunk, gives it to the threads again and wakes those that wait for one.
void set_free(std::uint32_t chunk);
// Units that are ready to be taken.
std::uint32_t ready_units();
// Makes divided units whole whose pages are all free.
void join_pages();

// Gives memory to a unit that was never in use, and sets it free; false if there is none. Touching 16 MiB of a file
// for the first time takes tens of milliseconds: the drain does it while the program goes on.
bool populate_chunk();

// Waits until the drain has set a chunk free, 10 ms at most.
void wait_for_free(std::uint32_t seen);

// Calls visit(chunk) for each chunk that holds events.
template <typename Visit>
void for_each_used_chunk(Visit&& visit) {
  for (std::uint32_t unit = lost_table_unit + 1; unit < session.file.chunks; ++unit) {
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
