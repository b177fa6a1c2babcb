// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/drain.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/drain_wakeup.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/output/chunk_writer.h"
#include "profiler/inject/output/output_file.h"
#include "profiler/inject/process/chunk_store.h"
#include "profiler/inject/process/clock_events.h"
#include "profiler/inject/process/control.h"
#include "profiler/inject/process/ring.h"
#include "profiler/inject/process/source.h"
#include "profiler/inject/system/futex.h"
#include "profiler/inject/system/quiet_thread.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/inject/system/system_clock.h"

namespace paceline::inject {
namespace {

using format::ChunkState;

std::atomic<bool> finishing{false};
std::atomic<std::uint32_t> closing{0};  // 1 = the drain must end the recording, 2 = it has ended it
enum Populating : std::uint32_t { between_chunks, in_a_chunk, stopped };
std::atomic<std::uint32_t> populating{between_chunks};
pthread_t thread;
bool has_thread = false;
void (*end_recording)() = nullptr;
thread_local constinit bool this_is_the_drain = false;

void drain_full_chunks() {
  for (;;) {
    const std::uint32_t number = session.full.take(session.file.chunks * format::pages_per_chunk);
    if (number == no_chunk) break;
    if (settings.ring_ns > 0) {
      hold_chunk(number);
    } else {
      store_chunk(number);
    }
    make_room();
  }
  write_lost_events(false);
}

void sleep_until(std::int64_t deadline_ns) {
  const std::uint32_t seen = drain_state.wakeups.load(std::memory_order_acquire);
  // The wake-ups of these two may be among those seen.
  if (finishing.load(std::memory_order_acquire) || closing.load(std::memory_order_acquire) != 0) return;
  drain_state.sleeping.store(true, std::memory_order_seq_cst);
  drain_full_chunks();  // chunks that became full before their threads saw `sleeping`
  while (!trigger_is_asked_for() && drain_state.wakeups.load(std::memory_order_acquire) == seen) {
    if (!wait_while(drain_state.wakeups, seen, deadline_ns)) break;
  }
  drain_state.sleeping.store(false, std::memory_order_seq_cst);
}

// Returns when the first of the sources wants to be called again.
std::int64_t tick_sources() {
  std::int64_t next = never;
  for (const Source* source : sources) {
    if (source->tick != nullptr) next = std::min(next, source->tick(monotonic_ns()));
  }
  return next;
}

// Makes one more chunk ready. Returns false if enough are.
bool populate_next() {
  std::uint32_t state = between_chunks;
  if (!populating.compare_exchange_strong(state, in_a_chunk, std::memory_order_acq_rel)) return false;
  const bool more = populate_ahead();
  populating.store(between_chunks, std::memory_order_release);
  wake_all(populating);
  return more;
}

void* run(void*) {
  constexpr std::int64_t second = 1'000'000'000;
  // A pair of clock readings that is nearly due is taken along, so that an idle process is woken less often.
  constexpr std::int64_t pair_slack = second / 4;
  pthread_setname_np(pthread_self(), "paceline");
  this_is_the_drain = true;
  // Taken now, because no chunk may be free when the file reaches its largest size and that must be recorded.
  writer.never_waits = true;
  if (settings.max_size > 0) next_chunk(1, Priority::outermost);
  std::int64_t next_pair = monotonic_ns() + second, next_renewal = monotonic_ns() + 2 * second;
  while (!finishing.load(std::memory_order_acquire)) {
    // Neither the sources (samples begin with their first tick) nor the end of a delay nor a full chunk wait until the
    // last chunk is populated, which may take a second on a busy disk.
    const std::int64_t next_tick = tick_sources();
    std::int64_t next_control = run_control(monotonic_ns());
    while (closing.load(std::memory_order_relaxed) == 0 && !finishing.load(std::memory_order_relaxed) &&
           populate_next()) {
      drain_full_chunks();
      next_control = run_control(monotonic_ns());
    }
    if (const int error = session.disk_error.load(std::memory_order_relaxed); error != 0) report_lost_events(error);
    sleep_until(std::min({next_control, next_pair, next_tick}));
    drain_full_chunks();
    serve_trigger();
    if (closing.load(std::memory_order_acquire) != 0) {
      end_recording();
      closing.store(2, std::memory_order_release);
      wake_all(closing);
      return nullptr;
    }
    const std::int64_t now = monotonic_ns();
    if (now >= next_pair - pair_slack) {
      record_clock_pair();
      next_pair = now + second;
    }
    if (now >= next_renewal) {
      next_renewal = now + renew_output(session.file) * second;
    }
  }
  serve_trigger();  // a trigger right before the end
  return nullptr;
}

// One line if events were dropped. An earlier line has reported a full disk.
void report_dropped_events() {
  struct Cause {
    format::DropCause cause;
    const char* text;
  };
  constexpr Cause causes[] = {{format::DropCause::no_free_chunk, "no memory free (more: --buffer)"},
                              {format::DropCause::too_long, "too long"},
                              {format::DropCause::disk, "disk"},
                              {format::DropCause::ring, "ring shorter than asked for (more: --buffer)"},
                              {format::DropCause::device, "CUDA, left out by CUPTI or without a buffer (at least)"},
                              {format::DropCause::interrupted, "of signal handlers that interrupted the recorder"}};
  char list[512] = "";
  std::size_t size = 0;
  const auto add = [&](const char* before, format::DropCause cause, const char* text) {
    const std::uint64_t events = session.file.dropped(cause);
    if (events == 0 || size >= sizeof list) return;
    size += static_cast<std::size_t>(
        snprintf(list + size, sizeof list - size, "%s%llu: %s", before, static_cast<unsigned long long>(events), text));
  };
  for (const Cause& cause : causes) add(size == 0 ? "not recorded: " : ", ", cause.cause, cause.text);
  add(size == 0 ? "recorded in part: " : "; recorded in part: ", format::DropCause::payload_cut,
      "NVTX payloads too long");
  if (size > 0) say("%s: events that are %s", session.file.path, list);
  const std::uint64_t nameless =
      session.file.header->dropped[static_cast<std::uint32_t>(format::DropCause::too_many_names)];
  if (nameless > 0) {
    say("%s: no events are lost, but %llu times a name was not kept: more than %u different names, or more text than "
        "--max-memory allows; those events are called \"%s\"",
        session.file.path, static_cast<unsigned long long>(nameless), most_names - 1, overflow_name);
  }
}

}  // namespace

void start_drain(void (*close)()) {
  end_recording = close;
  drain_state.sleeping = finishing = false;
  closing = 0;
  populating = between_chunks;
  start_chunk_store();
  const int error = start_quiet_thread(thread, run, 256 * 1024);
  has_thread = error == 0;
  drain_state.runs = has_thread;
  if (has_thread) return;
  say("%s: no thread to write events out: %s", session.file.path, strerror(error));
  set_pause(format::before_delay, false);  // no drain would end the delay
}

void stop_populating() {
  constexpr std::int64_t longest_wait_ns = 1'000'000'000;
  const std::int64_t deadline = monotonic_ns() + longest_wait_ns;
  for (std::uint32_t state = between_chunks;
       !populating.compare_exchange_strong(state, stopped, std::memory_order_acq_rel) && state != stopped;
       state = between_chunks) {
    if (state == in_a_chunk && !wait_while(populating, in_a_chunk, deadline)) return;
  }
}

bool let_drain_close(std::int64_t longest_ns) {
  if (!has_thread || this_is_the_drain) return false;
  std::uint32_t nobody = 0;
  closing.compare_exchange_strong(nobody, 1);
  wake_drain_surely();
  const std::int64_t deadline = monotonic_ns() + longest_ns;
  while (closing.load(std::memory_order_acquire) == 1) {
    if (!wait_while(closing, 1, deadline)) return false;
  }
  return true;
}

void finish_drain(std::uint64_t end_ticks) {
  finishing.store(true, std::memory_order_release);
  drain_state.runs = false;
  if (!this_is_the_drain) {
    wake_drain_surely();
    if (has_thread) pthread_join(thread, nullptr);
  }
  // Other threads may be in the middle of an event that they began before recording ended.
  usleep(1000);
  gate.accepting.store(0, std::memory_order_release);
  const SignalsBlocked blocked;  // a file at its size limit raises SIGXFSZ
  // Events that the disk does not take stay in the live area, where readers find them.
  bool all_written = true;
  session.file.may_outgrow = true;  // the live area is removed, so the file does not grow
  for_each_used_chunk([&](std::uint32_t number) {
    if (finish_chunk(number, end_ticks)) {
      std::atomic_ref<std::uint32_t>(session.file.chunk_at(number)->state)
          .store(static_cast<std::uint32_t>(ChunkState::free), std::memory_order_release);
    } else {
      all_written = false;
    }
  });
  all_written = write_lost_events(true) && all_written;
  report_dropped_events();
  close_output(session.file, all_written, this_is_the_drain);
  const timespec no_wait{};
  sigset_t file_limit;
  sigemptyset(&file_limit);
  sigaddset(&file_limit, SIGXFSZ);
  sigtimedwait(&file_limit, nullptr, &no_wait);
}

}  // namespace paceline::inject
