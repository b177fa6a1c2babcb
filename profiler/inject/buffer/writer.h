// SPDX-License-Identifier: Apache-2.0
// Where events go: each thread writes 16-byte slots into its own chunk of a shared file mapping.
//
//   if (recording()) emit(EventType::pop, 0);
//
// Writing an event takes a clock read, the stores of the slots, and one store with release order: no lock, no
// allocation, no system call. When a chunk is full its thread takes another one from a lock-free set (chunks.h) and
// wakes the drain (drain.h), which turns full chunks into compressed blocks.
//
// If no chunk is free, events that others depend on (the outermost ranges, ends, collectives) go into a page of the
// reserve. Other events are dropped and counted, together with their partner (the pop of a push), so that ranges stay
// balanced. The file records the periods in which events were dropped (lost.h). With --lossless the thread waits.
//
// After fork the child records nothing into its parent's file: the gate lies in a page that the kernel wipes in the
// child. The child opens a file of its own at its first event, unless --no-children is given (children.h).
#pragma once

#include <stddef.h>

#include <cstdint>
#include <string_view>

#include "profiler/format/event_table.h"
#include "profiler/inject/buffer/clock.h"
#include "profiler/inject/buffer/gate.h"
#include "profiler/inject/buffer/lost.h"
#include "profiler/inject/buffer/thread_writer.h"

namespace paceline::inject {

// While this object lives, the calling thread is in the middle of an event, or waits for room or for a lock of the
// recorder. A signal handler that emits an event at this moment must neither write into the thread's chunk nor wait for
// the same lock: it finds is_nested() true, calls drop_nested_event() and returns.
class ReentrancyGuard {
 public:
  ReentrancyGuard() : nested_(writer.in_event) {
    writer.in_event = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~ReentrancyGuard() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (nested_) return;
    if (writer.interrupted != 0) [[unlikely]]
      count_nested_drops();
    writer.in_event = false;
  }
  ReentrancyGuard(const ReentrancyGuard&) = delete;
  ReentrancyGuard& operator=(const ReentrancyGuard&) = delete;

  bool is_nested() const { return nested_; }

 private:
  bool nested_;
};

// How much other events depend on an event. Only needed events may use the reserve. The less an event is needed, the
// more of the reserve must stay free after it.
enum class Priority : std::uint8_t { outermost = 0, outer = 1, inner = 2, none = 3 };

constexpr Priority priority_of(EventType type) {
  switch (type) {
    case EventType::pop:  // of a push that was recorded
    case EventType::mpi_end:
    case EventType::clock_pair:
    case EventType::setting:
    case EventType::recording:
    case EventType::trigger:
    case EventType::process_end:
      return Priority::outermost;
    case EventType::end:  // also for ranges whose start was dropped
    case EventType::mpi_begin_coll:
      return Priority::outer;
    case EventType::start:
    case EventType::start_payload:
    case EventType::mpi_begin:
    case EventType::mpi_begin_peer:
    case EventType::sample:  // rare, and all that the counter thread records
      return Priority::inner;
    default:
      return format::defines(type) ? Priority::inner : Priority::none;
  }
}
constexpr Priority priority_of_push(std::uint32_t depth) {
  return depth < 3 ? static_cast<Priority>(depth) : Priority::none;
}

// Whether this thread's chunk has room for `slots`.
inline bool has_room(std::uint32_t slots) { return writer.end - writer.next >= static_cast<std::ptrdiff_t>(slots); }

// Takes another chunk with room for `slots` for this thread, or a place in the reserve. Returns nullptr if there is
// none. Cost: a bit search and a few stores. If `may_wait`, a thread waits briefly for its first chunk, and with
// --lossless for every chunk.
Slot* next_chunk(std::uint32_t slots, Priority priority, bool may_wait = true);

// Once in a process, before its first file.
void start_writers();
// With --lossless: the ranges that show how long a thread waited for room (format::pack_scope). 0: none.
void set_wait_scope(std::uint64_t scope);

// Returns room for `slots` slots in one chunk, which the caller fills and publishes event by event. Returns nullptr if
// no chunk is free, and counts one event as dropped.
inline Slot* claim(std::uint32_t slots, Priority priority) {
  Slot* slot = writer.next;
  if (writer.end - slot < static_cast<std::ptrdiff_t>(slots)) [[unlikely]] {
    slot = next_chunk(slots, priority);
    if (slot == nullptr) drop_event();
  }
  return slot;
}

// Writes an event with the time of the call. Returns false if no chunk was free: the event is dropped and counted. The
// caller must have checked recording().
template <class... Extensions>
inline bool emit_with_priority(Priority priority, EventType type, std::uint64_t low, const Extensions&... extensions) {
  constexpr std::uint32_t slots = 1 + sizeof...(extensions);
  Slot* slot = claim(slots, priority);
  if (slot == nullptr) [[unlikely]]
    return false;
  [[maybe_unused]] Slot* extension = slot;
  ((*++extension = extensions), ...);
  publish(slot, slots, type, low, ticks());
  return true;
}
template <class... Extensions>
inline bool emit(EventType type, std::uint64_t low, const Extensions&... extensions) {
  return emit_with_priority(priority_of(type), type, low, extensions...);
}

// Writes an event with the given time, in absolute ticks. Also for the drain thread, which never waits.
bool emit_at(std::uint64_t ticks, EventType type, std::uint64_t low);
bool emit_at(std::uint64_t ticks, EventType type, std::uint64_t low, const Slot& extension);

// Returns room for a rare event and waits up to 1 s for a chunk. Returns nullptr if none became free, and counts one
// event as dropped.
Slot* claim_surely(std::uint32_t slots);

// The same for an event with a text.
bool emit_text(EventType type, std::uint64_t low, std::string_view text);

// emit_push() records the begin of a range of this thread, and emit_pop() its end. Call them for every push and pop
// that no filter leaves out. While nothing is recorded, call skip_push() and skip_pop() instead, so that depths stay
// right.
void drop_push();
inline void skip_push() { ++writer.depth; }
template <class... Extensions>
inline void emit_push(EventType type, std::uint64_t low, const Extensions&... extensions) {
  if (!emit_with_priority(priority_of_push(writer.depth), type, low, extensions...)) [[unlikely]]
    drop_push();
  ++writer.depth;
}

// Returns false if the push was dropped; then the pop is dropped too.
bool close_lost_push();
void defer_pop(std::uint64_t low);
inline bool close_push() {
  writer.depth -= writer.depth != 0 ? 1 : 0;
  return writer.lost_pushes == 0 || close_lost_push();
}
inline void skip_pop() { close_push(); }
inline void emit_pop(std::uint64_t low) {
  if (!close_push()) [[unlikely]]
    return drop_event();
  if (!emit(EventType::pop, low)) [[unlikely]]
    defer_pop(low);
}

// The end of an MPI call whose begin was recorded.
void emit_mpi_end(std::uint64_t low);

}  // namespace paceline::inject
