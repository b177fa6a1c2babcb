#include "profiler/inject/recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/inject/children.h"
#include "profiler/inject/chunk_set.h"
#include "profiler/inject/clock_exchange.h"
#include "profiler/inject/control.h"
#include "profiler/inject/counters.h"
#include "profiler/inject/drain.h"
#include "profiler/inject/hang.h"
#include "profiler/inject/iterations.h"
#include "profiler/inject/mpi_session.h"
#include "profiler/inject/names.h"
#include "profiler/inject/nvtx_filter.h"
#include "profiler/inject/output_file.h"
#include "profiler/inject/ring.h"
#include "profiler/inject/session.h"
#include "profiler/inject/settings.h"

namespace paceline::inject {

Gate gate;
thread_local constinit ThreadWriter writer;
std::uint64_t start_ticks = 0;
std::atomic<bool> forked{false};
Session session;

namespace {

using format::ChunkHeader;
using format::ChunkState;
using format::FileHeader;

pthread_once_t opened_once = PTHREAD_ONCE_INIT;
pthread_key_t thread_end_key;
std::atomic<bool> close_began{false};
std::atomic<std::uint32_t> next_track{0};
std::atomic<std::uint64_t> next_sequence{1};

constexpr int chunks_at_start = 16;

void retire_chunk() {
  const auto number = static_cast<std::uint32_t>((reinterpret_cast<std::byte*>(writer.chunk) - session.file.live) /
                                                 format::chunk_bytes);
  std::atomic_ref<std::uint32_t>(writer.chunk->state)
      .store(static_cast<std::uint32_t>(ChunkState::full), std::memory_order_release);
  writer.chunk = nullptr;
  writer.next = writer.end = nullptr;
  session.full.insert(number);
  wake_drain();
}

// A thread ends: its chunk is drained, so that a program of many short threads does not use up the live area.
void thread_ended(void*) {
  if (writer.chunk != nullptr && gate.accepting.load(std::memory_order_acquire) != 0) retire_chunk();
}

void after_fork_in_child() {
  gate.on.store(0, std::memory_order_relaxed);
  gate.open.store(0, std::memory_order_relaxed);
  gate.accepting.store(0, std::memory_order_relaxed);
  gate.watch.store(0, std::memory_order_relaxed);
  gate.hang.store(0, std::memory_order_relaxed);
  reset_control_in_child();  // MPI_Pcontrol may be called in any child
  const bool recorded = session.file.header != nullptr && !close_began.load(std::memory_order_relaxed);
  if (!settings.children || (!recorded && !forked)) return;
  writer = {};
  forked = true;
}

void open_file() {
  start_ticks = ticks();
  if (!create_output(session.file, start_ticks, system_ns(CLOCK_REALTIME))) return;
  // Kernels before 4.14 cannot wipe; there the handler does it, for fork() at least.
  madvise(&gate, sizeof gate, MADV_WIPEONFORK);
  for (int chunk = 0; chunk < chunks_at_start; ++chunk) populate_chunk();
  session.owner = getpid();
  const std::int64_t started = session.file.header->process_start_utc_ns;
  start_control(started > 0 ? session.file.header->start_utc_ns - started : 0);
  start_iterations();
  start_hang_watch();
  gate.accepting.store(1, std::memory_order_release);
  gate.open.store(1, std::memory_order_release);
  announce_control();
  record_clock_pair();
  start_drain();
  start_ring();
  start_counters();
  if (settings.iteration_name != nullptr) {  // for analysis to take the same ranges
    const std::uint32_t key = intern(std::string_view("iteration_name"));
    emit_surely(EventType::setting, key | std::uint64_t{intern(std::string_view(settings.iteration_name))} << 32);
  }
}

void open_once() {
  // With other rights than the user's own, nothing in the environment is to be trusted.
  if (getauxval(AT_SECURE) != 0) return;
  read_settings();
  if (!find_out_whether_recorded()) return;
  start_clock();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  pthread_key_create(&thread_end_key, thread_ended);
  open_file();
}

}  // namespace

std::uint32_t take_unused_chunk() {
  if (session.unused.load(std::memory_order_relaxed) >= session.file.chunks) return ChunkSet::none;
  const std::uint32_t number = session.unused.fetch_add(1, std::memory_order_relaxed);
  return number < session.file.chunks ? number : ChunkSet::none;
}

bool populate_chunk() {
  const std::uint32_t number = take_unused_chunk();
  if (number == ChunkSet::none) return false;
  populate(session.file.chunk(number), format::chunk_bytes);
  session.free.insert(number);
  return true;
}

bool open_recorder() {
  pthread_once(&opened_once, open_once);
  return file_is_open();
}

bool open_in_child() {
  if (!forked.exchange(false)) return false;  // another thread of the child is about to
  become_child_of(session.owner);
  release_output(session.file);
  session.free.clear();
  session.full.clear();
  session.unused = 0;
  close_began = false;
  next_track = 0;
  next_sequence = 1;
  reset_names_in_child();
  reset_nvtx_in_child();
  reset_mpi_in_child();
  reset_iterations_in_child();
  reset_ring_in_child();
  reset_counters_in_child();
  forget_clock();
  open_file();
  if (gate.open.load(std::memory_order_relaxed) == 0) return false;
  repeat_names();
  repeat_definitions();
  repeat_nvtx_filter();
  return true;
}

void close_recorder() {
  if (session.file.header == nullptr || session.owner != getpid()) return;
  if (close_began.exchange(true)) return;
  stop_counters();
  gate.on.store(0, std::memory_order_relaxed);
  gate.open.store(0, std::memory_order_relaxed);
  const std::uint64_t end_ticks = ticks();
  record_clock_pair();
  const std::uint64_t normal = 0;
  emit_surely(EventType::process_end, normal);
  withdraw_clock();
  say_what_mpi_was_not_seen();
  finish_drain(end_ticks);
}

void record_clock_pair() {
  const ClockPair pair = read_clock_pair();
  emit_at(pair.ticks, EventType::clock_pair, static_cast<std::uint64_t>(pair.realtime_ns),
          Slot{static_cast<std::uint64_t>(pair.monotonic_raw_ns), pair.width});
}

void count_dropped(format::DropCause cause, std::uint64_t events) {
  if (session.file.header == nullptr) return;
  std::atomic_ref<std::uint64_t>(session.file.header->dropped[static_cast<std::uint32_t>(cause)])
      .fetch_add(events, std::memory_order_relaxed);
}

std::uint64_t next_chunk_sequence() { return next_sequence.load(std::memory_order_acquire); }

Slot* next_chunk(std::uint32_t slots) {
  if (gate.accepting.load(std::memory_order_acquire) == 0 || slots > format::slots_per_chunk) return nullptr;
  if (writer.chunk != nullptr) retire_chunk();
  std::uint32_t number = session.free.take(session.file.chunks);
  if (number == ChunkSet::none) number = take_unused_chunk();
  if (number == ChunkSet::none) return nullptr;
  if (!writer.known) {
    writer.known = true;
    writer.track = next_track.fetch_add(1, std::memory_order_relaxed);
    writer.thread_id = static_cast<std::uint64_t>(syscall(SYS_gettid));
  }
  pthread_setspecific(thread_end_key, &writer);
  ChunkHeader* chunk = session.file.chunk(number);
  chunk->track = writer.track;
  chunk->thread_id = writer.thread_id;
  std::atomic_ref<std::uint64_t>(chunk->sequence)
      .store(next_sequence.fetch_add(1, std::memory_order_relaxed), std::memory_order_release);
  std::atomic_ref<std::uint32_t>(chunk->state)
      .store(static_cast<std::uint32_t>(ChunkState::open), std::memory_order_release);
  writer.chunk = chunk;
  writer.next = reinterpret_cast<Slot*>(chunk + 1);
  writer.end = writer.next + format::slots_per_chunk;

  const std::uint64_t now = ticks();
  for (std::uint8_t pop = 0; pop < writer.owed_pops; ++pop) {
    publish(writer.next, 1, EventType::pop, writer.owed_pop[pop], now);
  }
  if (writer.owed_mpi_end != 0) publish(writer.next, 1, EventType::mpi_end, writer.owed_mpi_end, now);
  writer.owed_pops = 0;
  writer.owed_mpi_end = 0;
  return writer.end - writer.next >= static_cast<std::ptrdiff_t>(slots) ? writer.next : nullptr;
}

// Waiting is no deadlock: the drain sets chunks free whatever becomes of their contents.
Slot* claim_surely(std::uint32_t slots) {
  constexpr std::int64_t longest_ns = 1'000'000'000;  // by the clock: on a busy machine a short sleep is a long one
  for (std::int64_t began = 0;;) {
    Slot* slot = writer.end - writer.next >= static_cast<std::ptrdiff_t>(slots) ? writer.next : next_chunk(slots);
    if (slot != nullptr) return slot;
    if (gate.accepting.load(std::memory_order_acquire) == 0) return nullptr;
    const std::int64_t now = system_ns(CLOCK_MONOTONIC);
    if (began == 0) began = now;
    if (now - began > longest_ns) break;
    wake_drain();
    usleep(1000);
  }
  count_dropped(format::DropCause::no_free_chunk);
  return nullptr;
}

bool emit_surely(EventType type, std::uint64_t low, std::span<const Slot> extension) {
  remember_definition(type, low, extension);
  const auto slots = static_cast<std::uint32_t>(1 + extension.size());
  Slot* slot = claim_surely(slots);
  if (slot == nullptr) return false;
  std::copy(extension.begin(), extension.end(), slot + 1);
  publish(slot, slots, type, low, ticks());
  return true;
}

namespace {

Slot* claim_or_count(std::uint32_t slots) {
  Slot* slot = writer.end - writer.next >= static_cast<std::ptrdiff_t>(slots) ? writer.next : next_chunk(slots);
  if (slot == nullptr && gate.accepting.load(std::memory_order_relaxed) != 0) {
    count_dropped(format::DropCause::no_free_chunk);
  }
  return slot;
}

}  // namespace

bool emit_at(std::uint64_t at, EventType type, std::uint64_t low) {
  Slot* slot = claim_or_count(1);
  if (slot != nullptr) publish(slot, 1, type, low, at);
  return slot != nullptr;
}

bool emit_at(std::uint64_t at, EventType type, std::uint64_t low, const Slot& extension) {
  Slot* slot = claim_or_count(2);
  if (slot == nullptr) return false;
  slot[1] = extension;
  publish(slot, 2, type, low, at);
  return true;
}

bool emit_text(EventType type, std::uint64_t low, std::string_view text) {
  const auto slots = static_cast<std::uint32_t>(1 + (text.size() + sizeof(Slot) - 1) / sizeof(Slot));
  Slot* slot = claim_surely(slots);
  if (slot == nullptr) return false;
  memcpy(static_cast<void*>(slot + 1), text.data(), text.size());  // the rest of the last slot is zero already
  publish(slot, slots, type, low, ticks());
  return true;
}

void emit_pop_slowly(std::uint64_t low) {
  if (writer.lost_pops != 0) {
    --writer.lost_pops;
    count_dropped(format::DropCause::no_free_chunk);
    return;
  }
  if (!emit(EventType::pop, low) && writer.owed_pops < std::size(writer.owed_pop)) {
    writer.owed_pop[writer.owed_pops++] = static_cast<std::uint16_t>(low);
  }
}

void emit_mpi_end(std::uint64_t low) {
  if (!emit(EventType::mpi_end, low)) writer.owed_mpi_end = low;
}

}  // namespace paceline::inject

// Runs after every exit handler and destructor of the program itself.
__attribute__((destructor)) static void program_ends() { paceline::inject::close_recorder(); }
