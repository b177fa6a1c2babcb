// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/ring.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/drain_wakeup.h"
#include "profiler/inject/buffer/lost.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/output/chunk_writer.h"
#include "profiler/inject/process/chunk_store.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"

namespace paceline::inject {
namespace {

struct Held {
  std::uint32_t number;
  std::uint64_t last_ticks;
};
Held held[PageSet::capacity];
std::uint32_t held_count = 0;
// Chunks with lower sequence numbers hold events from before the latest trigger, so they become blocks, from this tick
// on.
std::uint64_t asked_for_below = 0, asked_for_from = 0;

std::atomic<std::uint64_t> pending{0};        // cause:8 | number:56
std::atomic<std::uint64_t> pending_since{0};  // absolute ticks

std::uint64_t ring_ticks() {
  return static_cast<std::uint64_t>(static_cast<double>(settings.ring_ns) * 1e-9 * clock_state.ticks_per_second) + 1;
}

// The first tick of the last seconds before `now` (absolute), relative to the file's time zero.
std::uint64_t window_start(std::uint64_t now) {
  const std::uint64_t relative = now - start_ticks;
  return relative > ring_ticks() ? relative - ring_ticks() : 0;
}

std::uint64_t kept_from() {
  return std::atomic_ref<std::uint64_t>(session.file.header->kept_from).load(std::memory_order_relaxed);
}

void advance_kept_from(std::uint64_t ticks) {
  if (ticks > kept_from()) {
    std::atomic_ref<std::uint64_t>(session.file.header->kept_from).store(ticks, std::memory_order_release);
  }
}

std::uint64_t sequence_of(std::uint32_t number) { return session.file.chunk_at(number)->sequence; }

void count_lost_definitions(std::uint32_t number) {
  const ChunkSummary chunk = summarize_chunk(number);
  note_lost_by_disk(*session.file.chunk_at(number), chunk.first_ticks, chunk.last_ticks, 1);
  count_dropped(format::DropCause::disk);
}

// Frees the chunk with the oldest events. Before that the file records that they are gone.
void recycle(const Held& oldest) {
  if (sequence_of(oldest.number) < asked_for_below) {
    store_chunk(oldest.number, asked_for_from);
    return;
  }
  if (oldest.last_ticks >= window_start(ticks())) {
    count_dropped(format::DropCause::ring, summarize_chunk(oldest.number).events);
  }
  advance_kept_from(oldest.last_ticks + 1);
  if (!write_definitions(oldest.number)) count_lost_definitions(oldest.number);
  set_free(oldest.number);
}

Held take(Held* one) {
  const Held taken = *one;
  *one = held[--held_count];
  return taken;
}

Held take_oldest() {
  return take(std::min_element(held, held + held_count,
                               [](const Held& a, const Held& b) { return a.last_ticks < b.last_ticks; }));
}

// The reserve is for later overloads, so the ring holds at most half of its pages.
void keep_reserve() {
  while (!reserve_has_more_than(2)) {
    Held* oldest = nullptr;
    for (Held* one = held; one != held + held_count; ++one) {
      if (is_of_reserve(one->number) && (oldest == nullptr || one->last_ticks < oldest->last_ticks)) oldest = one;
    }
    if (oldest == nullptr) return;
    recycle(take(oldest));
  }
}

void on_signal(int number) {
  const int error = errno;
  if (session.owner == getpid()) {
    request_trigger(format::TriggerCause::signal, static_cast<std::uint64_t>(number));
  } else {  // a child that is not recorded: the signal has its default effect
    signal(number, SIG_DFL);
    raise(number);
  }
  errno = error;
}

}  // namespace

void start_ring() {
  if (settings.ring_ns == 0 || settings.ring_signal == 0) return;
  struct sigaction before {};
  if (sigaction(settings.ring_signal, nullptr, &before) != 0) return;
  if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == on_signal) return;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) {
    say("the program handles signal %d itself, so that signal does not write out the ring; choose another with "
        "--ring-signal",
        settings.ring_signal);
    return;
  }
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ours.sa_flags = SA_RESTART;
  sigaction(settings.ring_signal, &ours, nullptr);
}

void request_trigger(format::TriggerCause cause, std::uint64_t number) {
  pending_since.store(ticks(), std::memory_order_relaxed);
  pending.store(static_cast<std::uint64_t>(cause) | number << 8, std::memory_order_seq_cst);
  wake_drain();
}

void hold_chunk(std::uint32_t number) {
  const ChunkSummary summary = summarize_chunk(number);
  if (sequence_of(number) < asked_for_below) {
    store_chunk(number, asked_for_from);
  } else {
    held[held_count++] = {number, summary.last_ticks};
    if (is_of_reserve(number)) keep_reserve();
  }
}

void make_room() {
  // Enough for a burst while the drain waits for a CPU.
  const std::uint32_t chunks = session.file.chunks;
  const std::uint32_t wanted = std::max(chunks / 8, std::min<std::uint32_t>(chunks / 4, 4));
  if (ready_units() >= wanted) return;
  join_pages();
  while (held_count > 0 && ready_units() < wanted) {
    const Held oldest = take_oldest();
    const bool whole = is_whole(oldest.number);
    recycle(oldest);
    if (!whole) join_pages();
  }
}

bool trigger_is_asked_for() { return pending.load(std::memory_order_seq_cst) != 0; }

void serve_trigger() {
  const std::uint64_t asked = pending.exchange(0, std::memory_order_acquire);
  if (asked == 0) return;
  const std::uint64_t at = pending_since.load(std::memory_order_relaxed);
  if (settings.ring_ns > 0) {
    asked_for_below = next_chunk_sequence();
    const std::uint64_t start = window_start(at);
    asked_for_from = start;
    advance_kept_from(start);
    while (held_count > 0) {
      const Held oldest = take_oldest();
      if (oldest.last_ticks >= start) {
        store_chunk(oldest.number, start);
      } else {
        advance_kept_from(oldest.last_ticks + 1);
        if (!write_definitions(oldest.number)) count_lost_definitions(oldest.number);
        set_free(oldest.number);
      }
    }
  }
  emit_at(at, EventType::trigger, asked, Slot{kept_from(), 0});
}

bool finish_chunk(std::uint32_t number, std::uint64_t now_ticks) {
  if (settings.ring_ns == 0) return write_chunk(number);
  const bool asked_for = sequence_of(number) < asked_for_below;
  const std::uint64_t start = std::min(window_start(now_ticks), asked_for ? asked_for_from : ~std::uint64_t{0});
  const ChunkSummary summary = summarize_chunk(number);
  if (summary.first_ticks < start) advance_kept_from(std::min(start, summary.last_ticks + 1));
  return write_chunk_from(number, start);
}

void reset_ring_in_child() {
  held_count = 0;
  asked_for_below = asked_for_from = 0;
  pending = 0;
}

}  // namespace paceline::inject
