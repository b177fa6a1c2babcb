#include "profiler/inject/hang.h"

#include <stdio.h>
#include <unistd.h>

#include "profiler/format/block.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/inject/mpi_communicators.h"
#include "profiler/inject/ring.h"
#include "profiler/inject/say.h"
#include "profiler/inject/session.h"
#include "profiler/inject/settings.h"

namespace paceline::inject {
namespace {

std::atomic<std::uint64_t> latest{0};  // absolute ticks; 0 = nothing was seen yet
std::uint64_t said = 0;                // the progress after which it was said that there is none

struct OpenCall {
  Slot head{}, extension{};
  bool found = false;
};

// The innermost call that is open at the end of a chunk.
OpenCall open_call(const format::ChunkHeader& chunk) {
  const auto* slots = reinterpret_cast<const Slot*>(&chunk + 1);
  const std::size_t whole = format::whole_slots(slots, format::slots_per_chunk);
  OpenCall open;
  for (std::size_t at = 0; at < whole; at += 1 + format::extension_slots(slots[at])) {
    switch (format::type_of(slots[at])) {
      case EventType::mpi_begin:
        open = {slots[at], {}, true};
        break;
      case EventType::mpi_begin_peer:
      case EventType::mpi_begin_coll:
      case EventType::mpi_begin_file:
      case EventType::mpi_begin_window:
        open = {slots[at], slots[at + 1], true};
        break;
      case EventType::mpi_end:
        open.found = false;
        break;
      default:
        break;
    }
  }
  return open;
}

// Of the main thread if it has one, else of any.
OpenCall find_open_call() {
  OpenCall best;
  for (std::uint32_t number = 0; number < session.file.chunks; ++number) {
    const format::ChunkHeader* chunk = session.file.chunk(number);
    const auto state = std::atomic_ref<const std::uint32_t>(chunk->state).load(std::memory_order_acquire);
    if (state != static_cast<std::uint32_t>(format::ChunkState::open)) continue;
    const OpenCall open = open_call(*chunk);
    const bool main = chunk->thread_id == static_cast<std::uint64_t>(session.owner);
    if (open.found && (main || !best.found)) best = open;
    if (main && open.found) break;
  }
  return best;
}

double seconds(std::uint64_t from_ticks) {
  return static_cast<double>(ticks() - from_ticks) / clock_state.ticks_per_second;
}

void describe(const OpenCall& open, char* out, std::size_t size) {
  if (!open.found) {
    snprintf(out, size, "no MPI call is open");
    return;
  }
  const format::MpiFunction* function = format::find_mpi_function(open.head.low & 0xffff);
  const char* name = function != nullptr ? function->name.data() : "an MPI call";
  const double open_for = seconds(start_ticks + format::ticks_of(open.head));
  if (format::type_of(open.head) != EventType::mpi_begin_coll) {
    snprintf(out, size, "%s has been open for %.1f s", name, open_for);
    return;
  }
  char communicator[64];
  communicator_name(static_cast<std::uint32_t>(open.extension.low), communicator, sizeof communicator);
  snprintf(out, size, "%s #%u on %s has been open for %.1f s", name,
           static_cast<unsigned>(open.extension.low >> 32) + 1, communicator, open_for);
}

}  // namespace

void note_progress_slowly() { latest.store(ticks(), std::memory_order_relaxed); }

void start_hang_watch() {
  latest = 0;
  gate.hang.store(settings.hang_ns > 0, std::memory_order_relaxed);
}

void end_hang_watch() {
  gate.hang.store(0, std::memory_order_relaxed);
  latest.store(0, std::memory_order_relaxed);
}

void look_for_hang() {
  const std::uint64_t progress = latest.load(std::memory_order_relaxed);
  if (progress == 0 || progress == said) return;
  const double idle = seconds(progress);
  if (idle * 1e9 < static_cast<double>(settings.hang_ns)) return;
  said = progress;
  char call[256], rank[24] = "no rank";
  describe(find_open_call(), call, sizeof call);
  const int number = std::atomic_ref<std::int32_t>(session.file.header->rank).load(std::memory_order_relaxed);
  if (number >= 0) snprintf(rank, sizeof rank, "rank %d", number);
  say("hang? %s, process %d: no iteration and no collective has ended for %.1f s; %s; recorded so far: %s", rank,
      static_cast<int>(session.owner), idle, call, session.file.path);
  request_trigger(format::TriggerCause::hang, static_cast<std::uint64_t>(idle));
}

}  // namespace paceline::inject
