// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/chunks.h"

#include <string.h>

#include <algorithm>

#include "profiler/inject/system/futex.h"
#include "profiler/inject/system/system_clock.h"

namespace paceline::inject {
namespace {

using format::ChunkHeader;
using format::ChunkState;
using format::pages_per_chunk;

// Free pages that stay in divided units, so that a program with many short threads does not divide and join all the
// time.
constexpr std::uint32_t pages_kept = 3 * pages_per_chunk;

std::atomic_ref<std::uint32_t> pages_field(std::uint32_t unit) {
  return std::atomic_ref<std::uint32_t>(session.file.chunk_at(unit * pages_per_chunk)->pages);
}

bool is_reserve(std::uint32_t unit) { return unit <= reserve_units(session.file.chunks); }
std::uint32_t first_unit() { return 1 + reserve_units(session.file.chunks); }
std::uint32_t all_pages() { return session.file.chunks * pages_per_chunk; }

// Divides a free unit that this thread has taken.
void divide(std::uint32_t unit, PageSet& into, std::uint32_t first_page) {
  pages_field(unit).store(1, std::memory_order_release);
  for (std::uint32_t page = first_page; page < pages_per_chunk; ++page) into.insert(unit * pages_per_chunk + page);
}

void join_unit(std::uint32_t unit) {
  const std::uint32_t first = unit * pages_per_chunk;
  if (!session.free_pages.take_all(first, pages_per_chunk)) return;
  for (std::uint32_t page = first + 1; page < first + pages_per_chunk; ++page) {
    memset(static_cast<void*>(session.file.chunk_at(page)), 0, sizeof(ChunkHeader));
  }
  pages_field(unit).store(0, std::memory_order_release);
  session.free.insert(unit);
}

}  // namespace

std::uint32_t units_for(std::size_t live_bytes) {
  constexpr std::size_t fewest = 6;  // the table, the reserve, and four for everything else
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(live_bytes / format::chunk_bytes, fewest, ChunkSet::capacity));
}

void start_chunks() {
  session.free.clear(session.file.chunks);
  session.free_pages.clear(all_pages());  // touching less memory makes the start of a forked child shorter
  session.reserve.clear(all_pages());
  session.full.clear(all_pages());
  session.waiting = 0;
  session.file.chunk_at(lost_table_unit)->state = static_cast<std::uint32_t>(ChunkState::lost_table);
  session.disk_error = 0;
  session.allocated.clear(session.file.chunks);
  for (std::uint32_t unit = 0; unit < units_at_start; ++unit) session.allocated.insert(unit);
  for (std::uint32_t unit = 1; unit < units_at_start; ++unit) divide(unit, session.reserve, 0);
  session.reserve_end = units_at_start;
  session.unused = first_unit();
}

bool is_whole(std::uint32_t chunk) {
  return chunk % pages_per_chunk == 0 && pages_field(chunk / pages_per_chunk).load(std::memory_order_acquire) == 0;
}

std::size_t bytes_of(std::uint32_t chunk) { return is_whole(chunk) ? format::chunk_bytes : format::page_bytes; }

std::uint32_t slots_of_chunk(std::uint32_t chunk) {
  return static_cast<std::uint32_t>(is_whole(chunk) ? format::slots_per_chunk : format::slots_per_page);
}

std::uint32_t number_of(const ChunkHeader* chunk) {
  return static_cast<std::uint32_t>((reinterpret_cast<const std::byte*>(chunk) - session.file.live) /
                                    static_cast<std::ptrdiff_t>(format::page_bytes));
}

namespace {

bool allocate(std::uint32_t unit) {
  if (const int error = allocate_live_area(session.file, unit); error != 0) {
    session.disk_error.store(error, std::memory_order_relaxed);
    return false;
  }
  session.allocated.insert(unit);
  return true;
}

// The units that were never used and can be.
std::uint32_t unused_units() {
  const std::uint32_t unused = session.unused.load(std::memory_order_relaxed);
  return session.disk_error.load(std::memory_order_relaxed) != 0 || unused >= session.file.chunks
             ? 0
             : session.file.chunks - unused;
}

// Takes a unit that was never used, or returns ChunkSet::none.
std::uint32_t take_unused() {
  if (unused_units() == 0) return ChunkSet::none;
  const std::uint32_t unit = session.unused.fetch_add(1, std::memory_order_relaxed);
  return unit < session.file.chunks && allocate(unit) ? unit : ChunkSet::none;
}

}  // namespace

std::uint32_t take_unit() {
  std::uint32_t unit = session.free.take(session.file.chunks);
  if (unit == ChunkSet::none) unit = take_unused();
  return unit == ChunkSet::none ? no_chunk : unit * pages_per_chunk;
}

std::uint32_t take_page() {
  const std::uint32_t page = session.free_pages.take(all_pages());
  if (page != PageSet::none) return page;
  const std::uint32_t first = take_unit();
  if (first != no_chunk) divide(first / pages_per_chunk, session.free_pages, 1);
  return first;
}

std::uint32_t take_reserve() { return session.reserve.take(first_unit() * pages_per_chunk); }

bool is_of_reserve(std::uint32_t chunk) { return is_reserve(chunk / pages_per_chunk); }

bool reserve_has_more_than(std::uint32_t quarters) {
  if (quarters == 0) return true;
  const std::uint32_t all = reserve_units(session.file.chunks) * pages_per_chunk;
  return session.reserve.count(first_unit() * pages_per_chunk) * 4 > quarters * all;
}

void set_free(std::uint32_t chunk) {
  ChunkHeader* header = session.file.chunk_at(chunk);
  const std::size_t bytes = bytes_of(chunk);
  std::atomic_ref<std::uint32_t>(header->state)
      .store(static_cast<std::uint32_t>(ChunkState::free), std::memory_order_release);
  memset(static_cast<void*>(header + 1), 0, bytes - sizeof(ChunkHeader));
  const std::uint32_t unit = chunk / pages_per_chunk;
  if (bytes == format::chunk_bytes) {
    session.free.insert(unit);
  } else if (is_reserve(unit)) {
    session.reserve.insert(chunk);
  } else {
    session.free_pages.insert(chunk);
    if (session.free_pages.count(all_pages()) > pages_kept) join_unit(unit);
  }
  session.freed.fetch_add(1, std::memory_order_seq_cst);
  if (session.waiting.load(std::memory_order_seq_cst) != 0) wake_all(session.freed);
}

std::uint32_t ready_units() { return session.free.count(session.file.chunks) + unused_units(); }

void join_pages() {
  for (std::uint32_t unit = first_unit(); unit < session.file.chunks; ++unit) join_unit(unit);
}

bool populate_chunk() {
  const std::uint32_t unit = take_unused();
  if (unit == ChunkSet::none) return false;
  populate(session.file.chunk_at(unit * pages_per_chunk), format::chunk_bytes);
  session.free.insert(unit);
  return true;
}

bool populate_ahead() {
  constexpr std::uint32_t fewest = 4;
  const std::uint32_t taken = session.file.chunks - first_unit() - unused_units();
  if (unused_units() > 0 && session.free.count(session.file.chunks) < std::max(fewest, taken / 2)) {
    return populate_chunk();
  }
  const std::uint32_t next = session.reserve_end.load(std::memory_order_relaxed);
  if (taken <= 2 * fewest || next >= first_unit() || session.disk_error.load(std::memory_order_relaxed) != 0)
    return false;
  if (!allocate(next)) return false;
  divide(next, session.reserve, 0);
  session.reserve_end.store(next + 1, std::memory_order_relaxed);
  return true;
}

void wait_for_free(std::uint32_t seen) {
  constexpr std::int64_t longest_ns = 10'000'000;
  session.waiting.fetch_add(1, std::memory_order_seq_cst);
  wait_while(session.freed, seen, monotonic_ns() + longest_ns);
  session.waiting.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace paceline::inject
