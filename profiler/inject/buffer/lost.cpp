// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/lost.h"

#include <algorithm>
#include <atomic>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/clock.h"
#include "profiler/inject/buffer/gate.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/buffer/thread_writer.h"

namespace paceline::inject {
namespace {

using format::LostEntry;

// Entry 0 is shared: it sums up the losses that have no entry of their own.
constexpr std::uint32_t common = 0;
constexpr std::uint32_t of_any_thread = static_cast<std::uint32_t>(format::LostScope::any_thread) << 8;

LostSet free_entries;
LostSet released_entries;                  // of threads that have ended, and of the disk
std::uint32_t disk_entry = LostSet::none;  // the latest entry of the disk

LostEntry* table() {
  return reinterpret_cast<LostEntry*>(session.file.chunk_at(lost_table_unit * format::pages_per_chunk) + 1);
}

std::uint64_t load(std::uint64_t& field) {
  return std::atomic_ref<std::uint64_t>(field).load(std::memory_order_acquire);
}
void store(std::uint64_t& field, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(field).store(value, std::memory_order_release);
}

void begin(LostEntry& entry, std::uint32_t track, std::uint64_t thread_id, std::uint32_t cause, std::uint64_t first,
           std::uint64_t last, std::uint64_t events) {
  entry.track = track;
  entry.thread_id = thread_id;
  entry.cause = cause;
  store(entry.first_ticks, first);
  store(entry.last_ticks, last);
  store(entry.events, events);
}

void add(LostEntry& entry, std::uint64_t last, std::uint64_t events) {
  store(entry.last_ticks, std::max(last, load(entry.last_ticks)));
  store(entry.events, load(entry.events) + events);
}

void add_to_common(std::uint32_t cause, std::uint64_t first, std::uint64_t last, std::uint64_t events) {
  LostEntry& entry = table()[common];
  std::atomic_ref<std::uint32_t>(entry.cause).store(cause | of_any_thread, std::memory_order_relaxed);
  const auto bring = [](std::uint64_t& field, std::uint64_t value, auto is_better) {
    std::atomic_ref<std::uint64_t> at(field);
    std::uint64_t there = at.load(std::memory_order_relaxed);
    while (is_better(value, there) && !at.compare_exchange_weak(there, value, std::memory_order_acq_rel)) {
    }
  };
  bring(entry.first_ticks, first, [](std::uint64_t a, std::uint64_t b) { return b == 0 || a < b; });
  bring(entry.last_ticks, last, [](std::uint64_t a, std::uint64_t b) { return a > b; });
  std::atomic_ref<std::uint64_t>(entry.events).fetch_add(events, std::memory_order_release);
}

void clear(std::uint32_t number) {
  store(table()[number].events, 0);
  if (number != common) free_entries.insert(number);
}

bool write_entry(std::uint32_t number, WriteSlots* write) {
  LostEntry& entry = table()[number];
  const std::uint64_t events = load(entry.events);
  if (events > 0) {
    const std::uint64_t first = load(entry.first_ticks), last = load(entry.last_ticks);
    const std::uint64_t cause = std::atomic_ref<std::uint32_t>(entry.cause).load(std::memory_order_relaxed);
    const Slot slots[] = {{format::pack_high(last, EventType::lost), cause | events << 16}, {first, last}};
    format::ChunkHeader chunk{};
    chunk.track = entry.track;
    chunk.thread_id = entry.thread_id;
    chunk.sequence = take_chunk_sequence();
    if (!write(chunk, slots, std::size(slots))) return false;
  }
  clear(number);
  return true;
}

}  // namespace

void start_lost() {
  free_entries.clear();
  released_entries.clear();
  disk_entry = LostSet::none;
  for (std::uint32_t entry = common + 1; entry < format::lost_entries; ++entry) free_entries.insert(entry);
}

void note_lost(format::DropCause why, std::uint64_t events, std::uint64_t first) {
  const auto cause = static_cast<std::uint32_t>(why);
  const std::uint64_t now = ticks() - start_ticks;
  const std::uint64_t began = first != 0 ? first - start_ticks : now;
  if (writer.lost != nullptr && writer.lost->cause != cause) release_lost_entry();
  if (writer.lost != nullptr) {
    add(*writer.lost, now, events);
    return;
  }
  const std::uint32_t number = free_entries.take(format::lost_entries);
  if (number == LostSet::none) {
    add_to_common(cause, began, now, events);
    return;
  }
  register_thread();
  writer.lost = &table()[number];
  begin(*writer.lost, writer.track, writer.thread_id, cause, began, now, events);
}

void record_lost(std::uint64_t now) {
  LostEntry* entry = writer.lost;
  if (entry == nullptr) return;
  writer.next[1] = {load(entry->first_ticks), load(entry->last_ticks)};
  publish(writer.next, 2, EventType::lost, format::pack_lost(entry->cause, load(entry->events)), now);
  writer.lost = nullptr;
  clear(static_cast<std::uint32_t>(entry - table()));
}

void release_lost_entry() {
  if (writer.lost == nullptr) return;
  released_entries.insert(static_cast<std::uint32_t>(writer.lost - table()));
  writer.lost = nullptr;
}

void count_dropped(format::DropCause cause, std::uint64_t events) {
  if (session.file.header == nullptr) return;
  std::atomic_ref<std::uint64_t>(session.file.dropped(cause)).fetch_add(events, std::memory_order_relaxed);
}

// The stretch is noted before the count, so that the stretches account for all counted events whenever the process is
// killed. Events after the end of the recording are not counted.
void drop_event() {
  if (gate.accepting.load(std::memory_order_acquire) == 0) return;
  const bool disk = session.disk_error.load(std::memory_order_relaxed) != 0;
  const format::DropCause cause = disk ? format::DropCause::disk : format::DropCause::no_free_chunk;
  note_lost(cause, 1);
  count_dropped(cause);
}

void drop_nested_event() {
  if (gate.on.load(std::memory_order_relaxed) == 0 &&
      file_state.load(std::memory_order_relaxed) != FileState::opening) {
    return;
  }
  if (writer.interrupted == 0) writer.interrupted_at = ticks();
  ++writer.interrupted;
}

void count_nested_drops() {
  const std::uint32_t events = writer.interrupted;
  writer.interrupted = 0;
  if (gate.accepting.load(std::memory_order_acquire) == 0) return;
  note_lost(format::DropCause::interrupted, events, std::max(writer.interrupted_at, start_ticks));
  count_dropped(format::DropCause::interrupted, events);
}

void note_lost_by_disk(const format::ChunkHeader& chunk, std::uint64_t first_ticks, std::uint64_t last_ticks,
                       std::uint64_t events) {
  constexpr auto disk = static_cast<std::uint32_t>(format::DropCause::disk);
  // While the disk is full, chunk after chunk is lost. Consecutive losses of one track are one stretch.
  if (disk_entry != LostSet::none && table()[disk_entry].track == chunk.track && load(table()[disk_entry].events) > 0) {
    add(table()[disk_entry], last_ticks, events);
    return;
  }
  const std::uint32_t number = free_entries.count(format::lost_entries) > format::lost_entries / 2
                                   ? free_entries.take(format::lost_entries)
                                   : LostSet::none;
  if (number == LostSet::none) {
    add_to_common(disk, first_ticks, last_ticks, events);
    return;
  }
  disk_entry = number;
  begin(table()[number], chunk.track, chunk.thread_id, disk, first_ticks, last_ticks, events);
  released_entries.insert(number);
}

bool write_lost(bool all, WriteSlots* write) {
  for (std::uint32_t number; (number = released_entries.take(format::lost_entries)) != LostSet::none;) {
    if (number == disk_entry) disk_entry = LostSet::none;
    if (write_entry(number, write)) continue;
    released_entries.insert(number);
    return false;
  }
  if (!all) return true;
  bool done = true;
  for (std::uint32_t number = 0; number < format::lost_entries; ++number) {
    if (load(table()[number].events) > 0) done = write_entry(number, write) && done;
  }
  return done;
}

}  // namespace paceline::inject
