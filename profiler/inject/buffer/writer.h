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

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "profiler/format/event_table.h"
#include "profiler/format/layout.h"
#include "profiler/inject/buffer/clock.h"

namespace paceline::inject {

using format::EventType;
using format::Slot;

// A page of its own. MADV_WIPEONFORK sets it to zero in a child of fork, so the child never writes to its parent's
// file.
struct alignas(format::page_bytes) Gate {
  std::atomic<std::uint32_t> on{0};         // events are recorded
  std::atomic<std::uint32_t> open{0};       // there is a file: definitions are recorded even while `on` is 0
  std::atomic<std::uint32_t> accepting{0};  // chunks are handed out; still 1 for the last events after `open` became 0
  std::atomic<std::uint32_t> source_flags[8] = {};  // of the event sources (sources/flags.h)
};
extern Gate gate;

// Where the calling thread writes. Trivial, so that it needs no constructor and stays usable in destructors. The first
// members, in one line of the caches, are those that each event needs.
struct alignas(64) ThreadWriter {
  Slot* next = nullptr;
  Slot* end = nullptr;  // null while the chunk is a page of the reserve, so that next_chunk() sees each event
  // Lost pushes keep ranges balanced when events are dropped: a pop is left out if its push was dropped.
  std::uint64_t lost_pushes = 0;  // bit d: the open push at depth d was dropped; bit 63: some at depth 63 or deeper
  std::uint32_t depth = 0;        // open pushes, recorded or not
  std::uint32_t interrupted = 0;  // events of signal handlers that interrupted it in an event and were dropped
  bool making = false;            // it is in the middle of an event (Making)

  Slot* reserve_end = nullptr;
  format::ChunkHeader* chunk = nullptr;
  std::uint64_t thread_id = 0;
  std::uint32_t track = 0;
  bool known = false;        // it has a track
  bool never_waits = false;  // true for the drain
  bool starved = false;      // no chunk was free when session.freed was `starved_at`
  std::uint32_t starved_at = 0;
  std::uint32_t lost_deep = 0;  // the number of lost pushes at depth 63 or deeper
  // An end that was dropped alone is written at the start of the next chunk.
  std::uint8_t owed_pops = 0;
  std::uint16_t owed_pop[32] = {};    // their domains
  std::uint64_t owed_mpi_end = 0;     // `low` of the event; 0 = none
  format::LostEntry* lost = nullptr;  // what was lost since the latest chunk; null: nothing
  std::uint64_t interrupted_at = 0;   // ticks of the first interrupted event
};
extern thread_local constinit ThreadWriter writer __attribute__((tls_model("initial-exec")));

// Counts the events in `writer.interrupted` as lost.
void settle_interrupted();

// While this object lives, the calling thread is in the middle of an event, or waits for room or for a lock of the
// recorder. A signal handler that emits an event at this moment must neither write into the thread's chunk nor wait for
// the same lock: it finds interrupts() true, calls lose_interrupted() and returns.
class Making {
 public:
  Making() : interrupts_(writer.making) {
    writer.making = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~Making() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (interrupts_) return;
    if (writer.interrupted != 0) [[unlikely]]
      settle_interrupted();
    writer.making = false;
  }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

  bool interrupts() const { return interrupts_; }

 private:
  bool interrupts_;
};

// The absolute ticks of the file's time zero.
extern std::uint64_t start_ticks;

// What a thread that finds the gate closed has to do about the file.
enum class FileState : std::uint32_t {
  settled,   // nothing: it is open, or it was closed, or there will be none
  unopened,  // open_recorder() opens it
  in_child,  // the next event opens it: this is a child of fork that will be recorded
  opening,   // another thread opens it
};
extern std::atomic<FileState> file_state;
// Opens the file of a child, or waits until another thread has opened the file. Returns true if there is one.
//
// A signal handler that emits may call this while it interrupts the program anywhere, for example while its thread
// holds a lock of the C library that the opening needs. So the wait ends after 2 s, no second thread waits that long,
// and the events until the file is open are counted as dropped.
bool open_or_await();

// True while there is a file: definitions go there even while recording is switched off.
inline bool file_is_open() {
  if (gate.open.load(std::memory_order_acquire) != 0) return true;
  return file_state.load(std::memory_order_relaxed) != FileState::settled && open_or_await();
}
// True while events are recorded. One relaxed load.
inline bool recording() {
  if (gate.on.load(std::memory_order_relaxed) != 0) [[likely]]
    return true;
  return file_state.load(std::memory_order_relaxed) != FileState::settled && open_or_await() &&
         gate.on.load(std::memory_order_relaxed) != 0;
}

// This function, open_or_await() and close_recorder() are defined in lifecycle.cpp, which knows the event sources.
//
// Opens the file at the first call, whichever event source makes it. Returns true if there is a file. Never opens a
// second file in a process. The calling thread takes no signals while it opens the file. If another thread is opening
// it, the call waits for at most `longest_wait_ns`. children.h describes the children of a recorded process.
inline constexpr std::int64_t wait_in_handlers_ns = 2'000'000'000;
bool open_recorder(std::int64_t longest_wait_ns = wait_in_handlers_ns);
// True while a thread opens the file, after open_recorder() returned false because it waited in vain.
inline bool file_is_being_opened() { return file_state.load(std::memory_order_acquire) == FileState::opening; }

// Ends the recording: drains all chunks and compacts the file. Later events are ignored. Has no effect when called
// twice or in a child.
void close_recorder();

// The sequence number that the next chunk will have in the file. The second function takes it.
std::uint64_t next_chunk_sequence();
std::uint64_t take_chunk_sequence();

// How much other events depend on an event. Only needed events may use the reserve. The less an event is needed, the
// more of the reserve must stay free after it.
enum class Need : std::uint8_t { outermost = 0, outer = 1, inner = 2, none = 3 };

constexpr Need need_of(EventType type) {
  switch (type) {
    case EventType::pop:  // of a push that was recorded
    case EventType::mpi_end:
    case EventType::clock_pair:
    case EventType::setting:
    case EventType::recording:
    case EventType::trigger:
    case EventType::process_end:
      return Need::outermost;
    case EventType::end:  // also for ranges whose start was dropped
    case EventType::mpi_begin_coll:
      return Need::outer;
    case EventType::start:
    case EventType::start_payload:
    case EventType::mpi_begin:
    case EventType::mpi_begin_peer:
    case EventType::sample:  // few, and without them the counter thread has nothing
      return Need::inner;
    default:
      return format::defines(type) ? Need::inner : Need::none;
  }
}
constexpr Need need_of_push(std::uint32_t depth) { return depth < 3 ? static_cast<Need>(depth) : Need::none; }

// Takes another chunk with room for `slots` for this thread, or a place in the reserve. Returns nullptr if there is
// none. Cost: a bit search and a few stores. If `may_wait`, a thread waits briefly for its first chunk, and with
// --lossless for every chunk.
Slot* next_chunk(std::uint32_t slots, Need need, bool may_wait = true);

// Gives the calling thread a track.
void know_thread();

// Once in a process, before its first file.
void start_writers();
// For each file, once events are accepted: defines the ranges that --lossless records.
void define_waits();
// In a forked child that opens a file of its own: tracks and chunks count from their beginnings.
void reset_writers_in_child();

// Records a clock pair now.
void record_clock_pair();

void count_dropped(format::DropCause cause, std::uint64_t events = 1);
// Notes that the calling thread found no room for an event.
void lose_event();
// The same for an event of a signal handler that interrupted the making of another event.
void lose_interrupted();

// Completes an event at `slot`, whose extension slots are filled in already: stores `low`, moves the thread's writer
// behind its `slots` slots, and stores the type and the time `at` (absolute ticks) last, with release order. From then
// on the event is in the file, however the process ends.
inline void publish(Slot* slot, std::uint32_t slots, EventType type, std::uint64_t low, std::uint64_t at) {
  slot->low = low;
  writer.next = slot + slots;
  std::atomic_ref<std::uint64_t>(slot->high)
      .store(format::pack_high(at - start_ticks, type), std::memory_order_release);
}

// Returns room for `slots` slots in one chunk, which the caller fills and publishes event by event. Returns nullptr if
// no chunk is free, and counts one event as dropped.
inline Slot* claim(std::uint32_t slots, Need need) {
  Slot* slot = writer.next;
  if (writer.end - slot < static_cast<std::ptrdiff_t>(slots)) [[unlikely]] {
    slot = next_chunk(slots, need);
    if (slot == nullptr) lose_event();
  }
  return slot;
}

// Writes an event with the time of the call. Returns false if no chunk was free: the event is dropped and counted. The
// caller must have checked recording().
template <class... Extensions>
inline bool emit_needed(Need need, EventType type, std::uint64_t low, const Extensions&... extensions) {
  constexpr std::uint32_t slots = 1 + sizeof...(extensions);
  Slot* slot = claim(slots, need);
  if (slot == nullptr) [[unlikely]]
    return false;
  [[maybe_unused]] Slot* extension = slot;
  ((*++extension = extensions), ...);
  publish(slot, slots, type, low, ticks());
  return true;
}
template <class... Extensions>
inline bool emit(EventType type, std::uint64_t low, const Extensions&... extensions) {
  return emit_needed(need_of(type), type, low, extensions...);
}

// Writes an event with the given time, in absolute ticks. Also for the drain thread, which never waits.
bool emit_at(std::uint64_t ticks, EventType type, std::uint64_t low);
bool emit_at(std::uint64_t ticks, EventType type, std::uint64_t low, const Slot& extension);

// Returns room for a rare event and waits up to 1 s for a chunk. Returns nullptr if none became free, and counts one
// event as dropped.
Slot* claim_surely(std::uint32_t slots);

// Writes a definition or another rare event, and waits up to 1 s for a chunk before it drops the event. Definitions are
// repeated in the files of forked children.
bool emit_surely(EventType type, std::uint64_t low, std::span<const Slot> extension = {});
inline bool emit_surely(EventType type, std::uint64_t low, const Slot& extension) {
  return emit_surely(type, low, std::span(&extension, 1));
}
bool emit_text(EventType type, std::uint64_t low, std::string_view text);

// emit_push() records the begin of a range of this thread, and emit_pop() its end. Call them for every push and pop
// that no filter leaves out. While nothing is recorded, call skip_push() and skip_pop() instead, so that depths stay
// right.
void lose_push();
inline void skip_push() { ++writer.depth; }
template <class... Extensions>
inline void emit_push(EventType type, std::uint64_t low, const Extensions&... extensions) {
  if (!emit_needed(need_of_push(writer.depth), type, low, extensions...)) [[unlikely]]
    lose_push();
  ++writer.depth;
}

// Returns false if the push was dropped; then the pop is dropped too.
bool leave_lost_push();
void owe_pop(std::uint64_t low);
inline bool leave_push() {
  writer.depth -= writer.depth != 0 ? 1 : 0;
  return writer.lost_pushes == 0 || leave_lost_push();
}
inline void skip_pop() { leave_push(); }
inline void emit_pop(std::uint64_t low) {
  if (!leave_push()) [[unlikely]]
    return lose_event();
  if (!emit(EventType::pop, low)) [[unlikely]]
    owe_pop(low);
}

// The end of an MPI call whose begin was recorded.
void emit_mpi_end(std::uint64_t low);

}  // namespace paceline::inject
