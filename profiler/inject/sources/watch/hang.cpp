// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/watch/hang.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "profiler/format/block.h"
#include "profiler/format/events.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/process/ring.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

std::atomic<std::uint64_t> latest{0};  // absolute ticks; 0 = no progress was seen yet
std::atomic<bool> iteration_is_open{false};
std::atomic<const MpiQuestions*> mpi_questions{nullptr};
std::atomic<std::uint64_t> script_collectives{~std::uint64_t{0}};  // domain << 32 | schema
std::int64_t hang_ns = 0;                                          // 0: no watch
// The latest progress before a message reported that there is none.
std::uint64_t said_quiet = 0, said_hang = 0;
std::int64_t next_look_ns = 0;  // the drain's

// The innermost call that is open at the end of a chunk.
struct OpenCall {
  Slot head{}, extension{};
  bool found = false;
  std::uint64_t last_test = 0;  // ticks of the latest MPI_Test…; 0 = none
};

bool is_test(const Slot& head) {
  const format::MpiFunction* function = format::find_mpi_function(head.low & 0xffff);
  return function != nullptr && function->name.starts_with("MPI_Test");
}

// A collective of a script is open from its push, which follows its payload, to the pop of this push.
struct ScriptCollective {
  const Slot *push = nullptr, *payload = nullptr;
  std::uint64_t inner = 0;

  void follow(const Slot* head, const Slot* before, std::uint64_t collectives) {
    const EventType type = format::type_of(*head);
    const std::uint64_t domain = collectives >> 32;
    if (type == EventType::push || type == EventType::push_payload) {
      if (head->low >> 48 != domain) return;
      const bool is_one = before != nullptr && format::type_of(*before) == EventType::payload &&
                          static_cast<std::uint32_t>(before->low) == static_cast<std::uint32_t>(collectives);
      if (is_one) {
        push = head, payload = before, inner = 0;
      } else {
        ++inner;
      }
    } else if (type == EventType::pop && (head->low & 0xffff) == domain && push != nullptr && inner-- == 0) {
      push = nullptr;
    }
  }
};

OpenCall open_call(const format::ChunkHeader& chunk) {
  const auto* slots = reinterpret_cast<const Slot*>(&chunk + 1);
  const std::size_t whole = format::whole_slots(slots, slots_of_chunk(number_of(&chunk)));
  const std::uint64_t collectives = script_collectives.load(std::memory_order_relaxed);
  OpenCall open;
  ScriptCollective script;
  const Slot* before = nullptr;
  for (std::size_t at = 0; at < whole; at += 1 + format::extension_slots(slots[at])) {
    script.follow(&slots[at], before, collectives);
    before = &slots[at];
    switch (format::type_of(slots[at])) {
      case EventType::mpi_begin:
        open = {slots[at], {}, true, open.last_test};
        if (is_test(slots[at])) open.last_test = format::ticks_of(slots[at]);
        break;
      case EventType::mpi_begin_peer:
      case EventType::mpi_begin_coll:
      case EventType::mpi_begin_file:
      case EventType::mpi_begin_window:
        open = {slots[at], slots[at + 1], true, open.last_test};
        break;
      case EventType::mpi_end:
        open.found = false;
        break;
      default:
        break;
    }
  }
  if (!open.found && script.push != nullptr) open = {*script.push, script.payload[2], true, open.last_test};
  return open;
}

// The main thread's open call if it has one, else that of any thread.
OpenCall find_open_call() {
  OpenCall best;
  bool best_is_main = false;
  std::uint64_t last_test = 0;
  for_each_used_chunk([&](std::uint32_t number) {
    const format::ChunkHeader* chunk = session.file.chunk_at(number);
    const auto state = std::atomic_ref<const std::uint32_t>(chunk->state).load(std::memory_order_acquire);
    if (state != static_cast<std::uint32_t>(format::ChunkState::open)) return;
    const OpenCall open = open_call(*chunk);
    last_test = std::max(last_test, open.last_test);
    if (best_is_main) return;
    const bool main = chunk->thread_id == static_cast<std::uint64_t>(session.owner);
    if (open.found && (main || !best.found)) best = open;
    best_is_main = main && open.found;
  });
  best.last_test = last_test;
  return best;
}

double seconds(std::uint64_t from_ticks) {
  return static_cast<double>(ticks() - from_ticks) / clock_state.ticks_per_second;
}

void write_communicator(std::uint32_t id, char* out, std::size_t size) {
  snprintf(out, size, "communicator %u", id);
  const MpiQuestions* questions = mpi_questions.load();
  if (questions != nullptr) questions->write_communicator(id, out, size);
}

// "MPI_Allreduce #17 on MPI_COMM_WORLD", "MPI_Recv with rank 1 of MPI_COMM_WORLD, tag 7,", "gloo:all_reduce #3".
void name_call(const Slot& head, const Slot& extension, char* out, std::size_t size) {
  const format::MpiFunction* function = format::find_mpi_function(head.low & 0xffff);
  const char* name = function != nullptr ? function->name.data() : "an MPI call";
  char communicator[64];
  switch (format::type_of(head)) {
    case EventType::mpi_begin_coll: {
      write_communicator(static_cast<std::uint32_t>(extension.low), communicator, sizeof communicator);
      snprintf(out, size, "%s #%u on %s", name, static_cast<unsigned>(extension.low >> 32) + 1, communicator);
      return;
    }
    case EventType::mpi_begin_peer: {
      const Slot slots[] = {head, extension};
      const auto call = format::unpack<format::events::MpiBeginPeer>(slots);
      write_communicator(call.communicator, communicator, sizeof communicator);
      char peer[24] = "any rank", tag[24] = "any tag";
      if (call.peer >= 0) snprintf(peer, sizeof peer, "rank %d", static_cast<int>(call.peer));
      if (call.tag >= 0) snprintf(tag, sizeof tag, "tag %d", static_cast<int>(call.tag));
      snprintf(out, size, "%s with %s of %s, %s,", name, peer, communicator, tag);
      return;
    }
    case EventType::push:
    case EventType::push_payload: {
      const std::string_view range = name_of(static_cast<std::uint32_t>(head.low));
      snprintf(out, size, "%.*s #%llu", static_cast<int>(std::min<std::size_t>(range.size(), 64)), range.data(),
               static_cast<unsigned long long>(extension.high) + 1);
      return;
    }
    default:
      snprintf(out, size, "%s", name);
  }
}

// A rank polls if it has tested requests in the last seconds.
constexpr double polling_s = 2;

bool name_polled(const OpenCall& call, char* out, std::size_t size) {
  const MpiQuestions* questions = mpi_questions.load();
  if (questions == nullptr || call.last_test == 0 || seconds(start_ticks + call.last_test) > polling_s) return false;
  Slot head, extension;
  if (!questions->find_posted(head, extension)) return false;
  name_call(head, extension, out, size);
  return true;
}

void look_for_hang() {
  const std::uint64_t progress = latest.load(std::memory_order_relaxed);
  if (progress == 0 || progress == said_hang) return;
  const double patience = static_cast<double>(hang_ns) * 1e-9, idle = seconds(progress);
  if (idle < patience) return;
  const OpenCall call = find_open_call();
  const double call_open_for = call.found ? seconds(start_ticks + format::ticks_of(call.head)) : 0;
  char what[256] = "an iteration is open, and no MPI call", rank[24] = "no rank", name[192];
  const bool polls = call_open_for < patience && name_polled(call, name, sizeof name);
  const bool hangs = call_open_for >= patience || polls || iteration_is_open.load(std::memory_order_relaxed);
  if (!hangs && progress == said_quiet) return;
  (hangs ? said_hang : said_quiet) = progress;
  standstills.fetch_add(1, std::memory_order_relaxed);
  if (polls) {
    snprintf(what, sizeof what, "%s has been polled for %.1f s", name, idle);
  } else if (call.found) {
    name_call(call.head, call.extension, name, sizeof name);
    snprintf(what, sizeof what, "%s has been open for %.1f s", name, call_open_for);
  }
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

std::atomic<std::uint32_t> standstills{0};

void note_progress_slowly() { latest.store(ticks(), std::memory_order_relaxed); }

void note_iteration_slowly(bool open) {
  iteration_is_open.store(open, std::memory_order_relaxed);
  note_progress_slowly();
}

bool watches_for_hangs() { return hang_ns > 0; }

void ask_for_hangs(const MpiQuestions& questions) {
  static MpiQuestions kept;
  kept = questions;
  mpi_questions.store(&kept);
}

void note_script_collectives(std::uint16_t domain, std::uint32_t schema) {
  script_collectives.store(std::uint64_t{domain} << 32 | schema, std::memory_order_relaxed);
}

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
