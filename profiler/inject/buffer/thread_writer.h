// SPDX-License-Identifier: Apache-2.0
// Where a thread writes its events.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/format/event_table.h"
#include "profiler/format/layout.h"

namespace paceline::inject {

using format::EventType;
using format::Slot;

// Where the calling thread writes. Trivial, so that it needs no constructor and stays usable in destructors. The
// members that every event needs come first, so that they share a cache line.
struct alignas(64) ThreadWriter {
  Slot* next = nullptr;
  Slot* end = nullptr;  // null while the chunk is a page of the reserve, so that next_chunk() sees each event
  // Lost pushes keep ranges balanced when events are dropped: a pop is left out if its push was dropped.
  std::uint64_t lost_pushes = 0;  // bit d: the open push at depth d was dropped; bit 63: some at depth 63 or deeper
  std::uint32_t depth = 0;        // open pushes, recorded or not
  std::uint32_t interrupted = 0;  // events of signal handlers that interrupted it in an event and were dropped
  bool in_event = false;          // it is in the middle of an event (ReentrancyGuard)

  Slot* reserve_end = nullptr;
  format::ChunkHeader* chunk = nullptr;
  std::uint64_t thread_id = 0;
  std::uint32_t track = 0;
  bool registered = false;   // it has a track
  bool never_waits = false;  // true for the drain
  bool starved = false;      // no chunk was free when session.freed was `starved_at`
  std::uint32_t starved_at = 0;
  std::uint32_t lost_deep = 0;  // the number of lost pushes at depth 63 or deeper
  // An end that was dropped alone is written at the start of the next chunk.
  std::uint8_t deferred_pops = 0;
  std::uint16_t deferred_pop[32] = {};  // their domains
  std::uint64_t deferred_mpi_end = 0;   // `low` of the event; 0 = none
  format::LostEntry* lost = nullptr;    // what was lost since the latest chunk; null: nothing
  std::uint64_t interrupted_at = 0;     // ticks of the first interrupted event
};
extern thread_local constinit ThreadWriter writer __attribute__((tls_model("initial-exec")));

// The absolute ticks of the file's time zero.
extern std::uint64_t start_ticks;

// The sequence number that the next chunk will have in the file. The second function takes it.
std::uint64_t next_chunk_sequence();
std::uint64_t take_chunk_sequence();

// Once in a process, before its first file. `thread_ended` is called for each thread that ends after
// register_thread().
void start_threads(void (*thread_ended)(void*));
// Gives the calling thread a track.
void register_thread();

// In a forked child that opens a file of its own: tracks and chunks count from their beginnings.
void reset_threads_in_child();

// Completes an event at `slot`, whose extension slots are filled in already: stores `low`, moves the thread's writer
// behind its `slots` slots, and stores the type and the time `at` (absolute ticks) last, with release order. From then
// on the event is in the file, however the process ends.
inline void publish(Slot* slot, std::uint32_t slots, EventType type, std::uint64_t low, std::uint64_t at) {
  slot->low = low;
  writer.next = slot + slots;
  std::atomic_ref<std::uint64_t>(slot->high)
      .store(format::pack_high(at - start_ticks, type), std::memory_order_release);
}

}  // namespace paceline::inject
