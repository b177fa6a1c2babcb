// Where events go: each thread writes 16-byte slots into its own chunk of a shared file mapping.
//
//   if (recording()) emit(EventType::pop, 0);
//
// Writing an event is a clock read, the slots, and one store with release order: no lock, no allocation, no system
// call. When a chunk is full its thread takes another from a lock-free set, and wakes the drain (drain.h), which turns
// full chunks into compressed blocks. Where no chunk is free the event is dropped and counted, and so is its partner
// (the pop of a push), so that ranges stay balanced.
//
// After fork the child records nothing: the gate lies in a page that the kernel wipes in the child. With --children it
// opens a file of its own at its first event (children.h).
#pragma once

#include <stddef.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "profiler/format/event.h"
#include "profiler/format/layout.h"
#include "profiler/inject/clock.h"

namespace paceline::inject {

using format::EventType;
using format::Slot;

// A page of its own: MADV_WIPEONFORK sets it to zero in a child of fork, which so never writes to its parent's file.
struct alignas(format::page_bytes) Gate {
  std::atomic<std::uint32_t> on{0};         // events are recorded
  std::atomic<std::uint32_t> open{0};       // there is a file: definitions are recorded even while `on` is 0
  std::atomic<std::uint32_t> accepting{0};  // chunks are handed out; outlasts `open` by the last events
  std::atomic<std::uint32_t> watch{0};      // iterations are followed (iterations.h)
  std::atomic<std::uint32_t> hang{0};       // progress is (hang.h)
};
extern Gate gate;

// The calling thread's place. Trivial, so that it needs no constructor and stays usable in destructors.
struct ThreadWriter {
  Slot* next = nullptr;
  Slot* end = nullptr;
  format::ChunkHeader* chunk = nullptr;
  std::uint64_t thread_id = 0;
  std::uint32_t track = 0;
  bool known = false;  // has a track
  // What keeps ranges balanced when events are dropped: pops to leave out because their push was dropped, and ends to
  // write, with the next chunk, because only they were dropped.
  std::uint8_t owed_pops = 0;
  std::uint32_t lost_pops = 0;
  std::uint16_t owed_pop[32] = {};  // the domains
  std::uint64_t owed_mpi_end = 0;   // `low` of the event; 0 = none
};
extern thread_local constinit ThreadWriter writer __attribute__((tls_model("initial-exec")));

// Absolute ticks of the file's zero.
extern std::uint64_t start_ticks;

// True in a child of fork that is to be recorded and has no file yet.
extern std::atomic<bool> forked;
// Opens its file. True if there is one.
bool open_in_child();

// True while there is a file: definitions go there even while recording is switched off.
inline bool file_is_open() {
  if (gate.open.load(std::memory_order_acquire) != 0) return true;
  return forked.load(std::memory_order_relaxed) && open_in_child();
}
// True while events are recorded. One relaxed load.
inline bool recording() {
  if (gate.on.load(std::memory_order_relaxed) != 0) [[likely]]
    return true;
  return forked.load(std::memory_order_relaxed) && open_in_child() && gate.on.load(std::memory_order_relaxed) != 0;
}

// Opens the file at the first call, from whichever event source is first. True if there is one. Never opens a second
// file in a process; in a child of a recorded process as children.h says.
bool open_recorder();

// Ends the recording: all chunks drained, the file compacted. Later events are ignored. Harmless when called twice, or
// in a child.
void close_recorder();

// The number that the next chunk will have in the file.
std::uint64_t next_chunk_sequence();

// Another chunk for this thread with room for `slots`; nullptr: none is free. A bit search and a few stores.
Slot* next_chunk(std::uint32_t slots);

// A clock pair, now.
void record_clock_pair();

void count_dropped(format::DropCause cause, std::uint64_t events = 1);

inline void publish(Slot* slot, std::uint32_t slots, EventType type, std::uint64_t low, std::uint64_t at) {
  slot->low = low;
  writer.next = slot + slots;
  std::atomic_ref<std::uint64_t>(slot->high)
      .store(format::pack_high(at - start_ticks, type), std::memory_order_release);
}

// Room for `slots` slots in one chunk, to be filled and published event by event; nullptr: none is free, and one event
// is counted as dropped.
inline Slot* claim(std::uint32_t slots) {
  Slot* slot = writer.next;
  if (writer.end - slot < static_cast<std::ptrdiff_t>(slots)) [[unlikely]] {
    slot = next_chunk(slots);
    if (slot == nullptr) count_dropped(format::DropCause::no_free_chunk);
  }
  return slot;
}

// Writes an event with the time of the call. False: no chunk was free; dropped and counted. The caller has asked
// recording() before.
template <class... Extensions>
inline bool emit(EventType type, std::uint64_t low, const Extensions&... extensions) {
  constexpr std::uint32_t slots = 1 + sizeof...(extensions);
  Slot* slot = claim(slots);
  if (slot == nullptr) [[unlikely]]
    return false;
  [[maybe_unused]] Slot* extension = slot;
  ((*++extension = extensions), ...);
  publish(slot, slots, type, low, ticks());
  return true;
}

// An event with a time of its own, absolute ticks. Never waits: for the drain thread as well.
bool emit_at(std::uint64_t ticks, EventType type, std::uint64_t low);
bool emit_at(std::uint64_t ticks, EventType type, std::uint64_t low, const Slot& extension);

// Room for a rare event: waits up to a second for a chunk; nullptr: none became free, and one event is counted as
// dropped.
Slot* claim_surely(std::uint32_t slots);

// A definition or another rare event: waits up to a second for a chunk before it is dropped. Definitions are repeated
// in the files of forked children.
bool emit_surely(EventType type, std::uint64_t low, std::span<const Slot> extension = {});
inline bool emit_surely(EventType type, std::uint64_t low, const Slot& extension) {
  return emit_surely(type, low, std::span(&extension, 1));
}
bool emit_text(EventType type, std::uint64_t low, std::string_view text);

void emit_pop_slowly(std::uint64_t low);

// The end of the latest range that this thread pushed.
inline void emit_pop(std::uint64_t low) {
  if (writer.lost_pops != 0 || writer.next == writer.end) [[unlikely]] {
    emit_pop_slowly(low);
  } else {
    emit(EventType::pop, low);
  }
}
// After a push was dropped: its pop must be, too.
inline void lose_push() { ++writer.lost_pops; }

// The end of an MPI call whose begin was recorded.
void emit_mpi_end(std::uint64_t low);

}  // namespace paceline::inject
