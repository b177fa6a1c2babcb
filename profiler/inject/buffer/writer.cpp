// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/writer.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/drain_wakeup.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/system/settings.h"

namespace paceline::inject {

namespace {

using format::ChunkHeader;
using format::ChunkState;

std::atomic<std::uint64_t> gave_up{~std::uint64_t{0}};  // session.freed when a thread waited for too long
std::atomic<std::uint64_t> wait_scope{0};  // of the ranges that show how long a thread waited for room (--lossless)

void retire_chunk() {
  const std::uint32_t number = number_of(writer.chunk);
  std::atomic_ref<std::uint32_t>(writer.chunk->state)
      .store(static_cast<std::uint32_t>(ChunkState::full), std::memory_order_release);
  writer.chunk = nullptr;
  writer.next = writer.end = writer.reserve_end = nullptr;
  session.full.insert(number);
  wake_drain();
}

// Drains the chunk of a thread that ends, so that a program with many short threads does not use up the live area.
void thread_ended(void*) {
  if (gate.accepting.load(std::memory_order_acquire) == 0) return;
  const ReentrancyGuard guard;
  release_lost_entry();
  if (writer.chunk != nullptr) retire_chunk();
}

}  // namespace

void start_writers() { start_threads(thread_ended); }

void set_wait_scope(std::uint64_t scope) { wait_scope.store(scope, std::memory_order_relaxed); }

namespace {

void open_chunk(std::uint32_t number) {
  register_thread();
  ChunkHeader* chunk = session.file.chunk_at(number);
  chunk->track = writer.track;
  chunk->thread_id = writer.thread_id;
  std::atomic_ref<std::uint64_t>(chunk->sequence).store(take_chunk_sequence(), std::memory_order_release);
  std::atomic_ref<std::uint32_t>(chunk->state)
      .store(static_cast<std::uint32_t>(ChunkState::open), std::memory_order_release);
  writer.chunk = chunk;
  writer.next = reinterpret_cast<Slot*>(chunk + 1);
  writer.end = writer.next + slots_of_chunk(number);
}

// Writes the ends that could not be written at their time.
void write_deferred_ends() {
  const std::uint64_t now = ticks();
  for (std::uint8_t pop = 0; pop < writer.deferred_pops; ++pop) {
    publish(writer.next, 1, EventType::pop, writer.deferred_pop[pop], now);
  }
  if (writer.deferred_mpi_end != 0) publish(writer.next, 1, EventType::mpi_end, writer.deferred_mpi_end, now);
  writer.deferred_pops = 0;
  writer.deferred_mpi_end = 0;
}

// Takes a free chunk: a page for a thread that has none yet, otherwise a unit, or a page if there is no unit.
std::uint32_t take_chunk(std::uint32_t slots) {
  const bool fits_page = slots + std::size(writer.deferred_pop) + 8 <= format::slots_per_page;
  if (!fits_page) return take_unit();
  if (!writer.registered) return take_page();
  const std::uint32_t unit = take_unit();
  return unit != no_chunk ? unit : take_page();
}

// Takes a page of the reserve. Its `end` is null, so that every event calls next_chunk().
Slot* place_in_reserve(std::uint32_t slots, Priority priority) {
  // Room in a page that this thread already has is also kept for events that are needed more.
  if (priority == Priority::none || slots > format::slots_per_page ||
      !reserve_has_more_than(static_cast<std::uint32_t>(priority))) {
    return nullptr;
  }
  if (writer.reserve_end == nullptr || writer.reserve_end - writer.next < static_cast<std::ptrdiff_t>(slots)) {
    const std::uint32_t page = take_reserve();
    if (page == no_chunk) return nullptr;
    if (writer.chunk != nullptr) retire_chunk();
    open_chunk(page);
    write_deferred_ends();
    writer.reserve_end = writer.end;
    writer.end = nullptr;
    if (writer.reserve_end - writer.next < static_cast<std::ptrdiff_t>(slots)) return nullptr;
  }
  return writer.next;
}

// Records the time that a thread waited as a range on its track.
void record_wait(std::uint64_t began) {
  const std::uint64_t scope = wait_scope.load(std::memory_order_relaxed);
  if (scope == 0) return;
  publish(writer.next, 1, EventType::push, scope, began);
  publish(writer.next, 1, EventType::pop, scope >> 48, ticks());
}

// Waits for a chunk for a limited time, because the drain may not be alive.
std::uint32_t wait_for_chunk(std::uint32_t slots, std::int64_t longest_ns) {
  const std::int64_t deadline = system_ns(CLOCK_MONOTONIC) + longest_ns;
  while (gate.accepting.load(std::memory_order_acquire) != 0 && drain_runs()) {
    const std::uint32_t seen = session.freed.load(std::memory_order_seq_cst);
    const std::uint32_t number = take_chunk(slots);
    if (number != no_chunk) return number;
    if (system_ns(CLOCK_MONOTONIC) > deadline) {
      gave_up.store(seen, std::memory_order_relaxed);  // no thread waits again until a chunk is freed
      return no_chunk;
    }
    wake_drain();
    wait_for_free(seen);
  }
  return no_chunk;
}

}  // namespace

Slot* next_chunk(std::uint32_t slots, Priority priority, bool may_wait) {
  const ReentrancyGuard guard;
  constexpr std::int64_t a_minute = 60'000'000'000, a_moment = 200'000'000;
  if (gate.accepting.load(std::memory_order_acquire) == 0 || slots > format::slots_per_chunk) return nullptr;
  if (writer.end != nullptr) retire_chunk();  // but not a page of the reserve
  // In an overload most events come here. They return early if no chunk was freed since the event before.
  const std::uint32_t seen = session.freed.load(std::memory_order_seq_cst);
  std::uint32_t number = writer.starved && writer.starved_at == seen ? no_chunk : take_chunk(slots);
  writer.starved = number == no_chunk;
  writer.starved_at = seen;
  may_wait = may_wait && !writer.never_waits;
  if (number == no_chunk && may_wait && settings.lossless && gave_up.load(std::memory_order_relaxed) != seen) {
    const std::uint64_t began = ticks();
    number = wait_for_chunk(slots, a_minute);
    if (number != no_chunk) {
      if (writer.chunk != nullptr) retire_chunk();
      open_chunk(number);
      record_wait(began);
    }
  } else {
    // Threads may start faster than the drain can follow. So the first event of a thread waits for a moment.
    if (number == no_chunk && may_wait && !writer.registered) number = wait_for_chunk(slots, a_moment);
    if (number != no_chunk) {
      if (writer.chunk != nullptr) retire_chunk();
      open_chunk(number);
    }
  }
  if (number == no_chunk) return place_in_reserve(slots, priority);
  record_lost(ticks());
  write_deferred_ends();
  return has_room(slots) ? writer.next : nullptr;
}

// Waiting causes no deadlock: the drain frees chunks even if it cannot store their contents.
Slot* claim_surely(std::uint32_t slots) {
  constexpr std::int64_t longest_ns =
      1'000'000'000;  // measured by the clock, because a short sleep may take long on a busy machine
  for (std::int64_t began = 0;;) {
    Slot* slot = has_room(slots) ? writer.next : next_chunk(slots, Priority::inner, false);
    if (slot != nullptr) return slot;
    if (gate.accepting.load(std::memory_order_acquire) == 0) return nullptr;
    const std::int64_t now = system_ns(CLOCK_MONOTONIC);
    if (began == 0) began = now;
    if (now - began > longest_ns) break;
    wake_drain();
    usleep(1000);
  }
  drop_event();
  return nullptr;
}

bool emit_at(std::uint64_t at, EventType type, std::uint64_t low) {
  const ReentrancyGuard guard;
  Slot* slot = claim(1, priority_of(type));
  if (slot != nullptr) publish(slot, 1, type, low, at);
  return slot != nullptr;
}

bool emit_at(std::uint64_t at, EventType type, std::uint64_t low, const Slot& extension) {
  const ReentrancyGuard guard;
  Slot* slot = claim(2, priority_of(type));
  if (slot == nullptr) return false;
  slot[1] = extension;
  publish(slot, 2, type, low, at);
  return true;
}

bool emit_text(EventType type, std::uint64_t low, std::string_view text) {
  const ReentrancyGuard guard;
  const auto slots = static_cast<std::uint32_t>(1 + (text.size() + sizeof(Slot) - 1) / sizeof(Slot));
  Slot* slot = claim_surely(slots);
  if (slot == nullptr) return false;
  memcpy(static_cast<void*>(slot + 1), text.data(), text.size());  // the rest of the last slot is zero already
  publish(slot, slots, type, low, ticks());
  return true;
}

namespace {

constexpr std::uint32_t deepest = 63;  // pushes from here on share a bit

}  // namespace

void drop_push() {
  const std::uint32_t depth = std::min(writer.depth, deepest);
  writer.lost_pushes |= std::uint64_t{1} << depth;
  if (depth == deepest) ++writer.lost_deep;
}

bool close_lost_push() {
  const std::uint32_t depth = std::min(writer.depth, deepest);
  const std::uint64_t bit = std::uint64_t{1} << depth;
  const bool lost = (writer.lost_pushes & bit) != 0;
  if (depth == deepest) {
    if (lost && --writer.lost_deep == 0) writer.lost_pushes &= ~bit;
  } else {
    writer.lost_pushes &= bit - 1;  // nothing is open at this depth or deeper now
    writer.lost_deep = 0;
  }
  return !lost;
}

void defer_pop(std::uint64_t low) {
  if (writer.deferred_pops < std::size(writer.deferred_pop)) {
    writer.deferred_pop[writer.deferred_pops++] = static_cast<std::uint16_t>(low);
  }
}

void emit_mpi_end(std::uint64_t low) {
  if (!emit(EventType::mpi_end, low)) writer.deferred_mpi_end = low;
}

}  // namespace paceline::inject
