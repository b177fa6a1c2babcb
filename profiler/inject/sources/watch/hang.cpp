#include "profiler/inject/sources/watch/hang.h"

#include <stdio.h>
#include <unistd.h>

#include "profiler/format/block.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/inject/core/chunks.h"
#include "profiler/inject/core/ring.h"
#include "profiler/inject/core/session.h"
#include "profiler/inject/core/settings.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/system/say.h"
#include "profiler/record/environment.h"

namespace paceline::inject {
namespace {

std::atomic<std::uint64_t> latest{0};  // absolute ticks; 0 = no progress was seen yet
std::atomic<bool> iteration_is_open{false};
std::atomic<WriteCommunicator> write_communicator{nullptr};
std::int64_t hang_ns = 0;  // 0: no watch
// The latest progress before a message reported that there is none.
std::uint64_t said_quiet = 0, said_hang = 0;
std::int64_t next_look_ns = 0;  // the drain's

struct OpenCall {
  Slot head{}, extension{};
  bool found = false;
};

// The innermost call that is open at the end of a chunk.
OpenCall open_call(const format::ChunkHeader& chunk) {
  const auto* slots = reinterpret_cast<const Slot*>(&chunk + 1);
  const std::size_t whole = format::whole_slots(slots, slots_of_chunk(number_of(&chunk)));
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

// The main thread's open call if it has one, else that of any thread.
OpenCall find_open_call() {
  OpenCall best;
  bool best_is_main = false;
  for_each_used_chunk([&](std::uint32_t number) {
    const format::ChunkHeader* chunk = session.file.chunk_at(number);
    const auto state = std::atomic_ref<const std::uint32_t>(chunk->state).load(std::memory_order_acquire);
    if (best_is_main || state != static_cast<std::uint32_t>(format::ChunkState::open)) return;
    const OpenCall open = open_call(*chunk);
    const bool main = chunk->thread_id == static_cast<std::uint64_t>(session.owner);
    if (open.found && (main || !best.found)) best = open;
    best_is_main = main && open.found;
  });
  return best;
}

double seconds(std::uint64_t from_ticks) {
  return static_cast<double>(ticks() - from_ticks) / clock_state.ticks_per_second;
}

void describe(const OpenCall& open, double open_for, char* out, std::size_t size) {
  const format::MpiFunction* function = format::find_mpi_function(open.head.low & 0xffff);
  const char* name = function != nullptr ? function->name.data() : "an MPI call";
  if (format::type_of(open.head) != EventType::mpi_begin_coll) {
    snprintf(out, size, "%s has been open for %.1f s", name, open_for);
    return;
  }
  char communicator[64];
  const auto id = static_cast<std::uint32_t>(open.extension.low);
  snprintf(communicator, sizeof communicator, "communicator %u", id);
  if (const WriteCommunicator write = write_communicator.load()) write(id, communicator, sizeof communicator);
  snprintf(out, size, "%s #%u on %s has been open for %.1f s", name,
           static_cast<unsigned>(open.extension.low >> 32) + 1, communicator, open_for);
}

void look_for_hang() {
  const std::uint64_t progress = latest.load(std::memory_order_relaxed);
  if (progress == 0 || progress == said_hang) return;
  const double patience = static_cast<double>(hang_ns) * 1e-9, idle = seconds(progress);
  if (idle < patience) return;
  const OpenCall call = find_open_call();
  const double call_open_for = call.found ? seconds(start_ticks + format::ticks_of(call.head)) : 0;
  const bool hangs = call_open_for >= patience || iteration_is_open.load(std::memory_order_relaxed);
  if (!hangs && progress == said_quiet) return;
  (hangs ? said_hang : said_quiet) = progress;
  char what[256] = "an iteration is open, and no MPI call", rank[24] = "no rank";
  if (call.found) describe(call, call_open_for, what, sizeof what);
  const int number = std::atomic_ref<std::int32_t>(session.file.header->rank).load(std::memory_order_relaxed);
  if (number >= 0) snprintf(rank, sizeof rank, "rank %d", number);
  const int process = static_cast<int>(session.owner);
  if (!hangs) {
    say("quiet: %s, process %d: no iteration and no collective for %.1f s, nor one that has been open for that time: "
        "the "
        "process may be computing, reading or writing",
        rank, process, idle);
    return;
  }
  say("hang? %s, process %d: no iteration and no collective has ended for %.1f s; %s; recorded so far: %s", rank,
      process, idle, what, session.file.path);
  request_trigger(format::TriggerCause::hang, static_cast<std::uint64_t>(idle));
}

std::int64_t look_each_second(std::int64_t now_ns) {
  if (hang_ns == 0) return never;
  if (now_ns >= next_look_ns) {
    look_for_hang();
    next_look_ns = now_ns + 1'000'000'000;
  }
  return next_look_ns;
}

}  // namespace

void note_progress_slowly() { latest.store(ticks(), std::memory_order_relaxed); }

void note_iteration_slowly(bool open) {
  iteration_is_open.store(open, std::memory_order_relaxed);
  note_progress_slowly();
}

bool watches_for_hangs() { return hang_ns > 0; }

void name_communicators_by(WriteCommunicator write) { write_communicator.store(write); }

void end_hang_watch() {
  switch_flag(SourceFlag::follows_progress, false);
  latest.store(0, std::memory_order_relaxed);
}

const Source hang_source = {
    .start = [] { hang_ns = milliseconds_in(record::env_hang_ms); },
    .open =
        [] {
          latest = 0;
          iteration_is_open = false;
          next_look_ns = 0;
          switch_flag(SourceFlag::follows_progress, hang_ns > 0);
        },
    .tick = look_each_second,
};

}  // namespace paceline::inject
