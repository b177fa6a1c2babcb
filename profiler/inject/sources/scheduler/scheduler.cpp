// SPDX-License-Identifier: Apache-2.0
// When each thread of the process runs, waits for a CPU or is blocked (--scheduler). The drain finds the threads and
// reads what the kernel recorded and counted for them; the threads themselves do nothing for it.
//
// Where the system allows it, every switch of a thread is recorded (SwitchRing). Else the sums of the system alone are
// recorded (ThreadSums), and also where a process switches more often than `most_switches` a second: for all threads
// but the main one, unless it switches that often itself.
// docs/trace-format.md describes the events.
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/clock.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/process/children.h"
#include "profiler/inject/sources/scheduler/iteration_sums.h"
#include "profiler/inject/sources/scheduler/other_programs.h"
#include "profiler/inject/sources/scheduler/switch_ring.h"
#include "profiler/inject/sources/scheduler/thread_sums.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/system/pace.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/inject/system/sysfs.h"
#include "profiler/inject/system/system_clock.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

using format::ThreadState;

constexpr std::int64_t millisecond = 1'000'000, second = 1'000'000'000;
constexpr std::int64_t shortest_interval_ns = 20 * millisecond;
// While no thread runs, the turns come more seldom: each after twice as long as nothing has run, up to this. A ring
// holds 1,024 switches a second of that time.
constexpr std::int64_t idle_interval_ns = 250 * millisecond;
// With rings, the turns come at least as often, whatever they cost: each ring holds as many switches as a process may
// make in the shorter time (most_switches), or twice as many as a thread makes where the longer one applies.
constexpr std::int64_t busy_ring_ns = 125 * millisecond, calm_ring_ns = 2 * busy_ring_ns;
constexpr std::uint64_t calm_switches = 500;                    // a second, of a thread
constexpr std::int64_t list_interval_ns = 500 * millisecond;    // where nothing else asks for a list
constexpr std::uint64_t starving_share = 10;                    // a thread waits for a CPU 1/10 of the time
constexpr std::int64_t starving_window_ns = 100 * millisecond;  // one late wake-up does not make it starve
constexpr std::uint64_t most_switches = 2000;                   // a second, of all threads
constexpr std::uint32_t slots_of_a_turn = 1024;                 // enough for all but turns with thousands of threads
constexpr std::size_t most_threads = 4096, most_rings = 256, most_kept_files = 64;

enum class Wanted : std::uint8_t { nothing, sums, switches };
Wanted wanted = Wanted::nothing;

// All members are 0 at first, so that the tables take no room in the library's file.
struct Thread {
  pid_t id = 0;
  bool is_recorders = false;      // of the recorder, and left out
  bool has_sums = false;          // `sums` are known
  bool sums_stayed = false;       // the last turn found the sums unchanged and recorded nothing
  bool is_off = false;            // its last switch was off its CPU
  bool is_cut = false;            // switches after `known_until` were lost
  unsigned file = 0;              // kept_files[file - 1], or none
  std::uint32_t in_window = 0;    // switches in this second
  std::uint64_t found_at = 0;     // absolute ticks
  std::uint64_t known_until = 0;  // absolute ticks
  std::uint64_t read_at = 0;      // absolute ticks of the last reading
  std::uint64_t switched_at = 0;  // absolute ticks of the last switch
  ThreadSums sums;
  SwitchRing ring;
};
// Sorted by id. The two take turns. Their pages are not resident before they are used.
Thread tables[2][most_threads];
Thread* threads = tables[0];
std::size_t thread_count = 0;
pid_t listed[most_threads];
struct SumsFile {
  KeptFile file;
  bool in_use = false;
};
SumsFile kept_files[most_kept_files];

// A moment by both clocks.
struct Moment {
  std::uint64_t ticks = 0;
  std::int64_t raw_ns = 0;
};

struct Switch {
  std::uint64_t ticks;
  std::uint32_t thread, number;
  ThreadState state;
};
// The switches of one turn, to be recorded in the order of time. Where the states of a thread become unknown, that is
// at the time of its last switch, and comes after it.
constexpr std::size_t most_pending = 4096;
Switch pending[most_pending];
std::size_t pending_count = 0;

struct State {
  ThreadFolder folder;
  Moment last;  // of the turn before
  Pace pace{.wanted_ns = shortest_interval_ns, .part = 1000};
  std::int64_t next_turn_ns = 0, next_list_ns = 0, window_end_ns = 0, ring_interval_ns = busy_ring_ns;
  std::int64_t active_ns = 0;  // when a thread was last found to have run
  std::uint64_t threads_known = 0, switches_in_window = 0;
  std::uint64_t listed_at = 0;  // absolute ticks; 0 = not yet
  std::size_t rings = 0;
  std::size_t most_in_ring = 0;       // switches of a thread, in this turn
  std::uint64_t longest_wait_ns = 0;  // of a thread for a CPU, in this turn
  std::uint64_t waited_ns = 0;        // the longest waits of the turns since `waits_since_ns`
  std::int64_t waits_since_ns = 0;
  unsigned busy_windows = 0;
  bool switches_allowed = false, clock_allowed = false, was_recording = false;
};
State state;
// One thread at a time takes a turn: the drain, and at the end the thread that closes the file. 1 outside a recording.
std::atomic<std::uint32_t> in_turn{1};

Moment now_by_both() {
  const std::uint64_t before = ticks();
  const std::int64_t raw_ns = true_ns(CLOCK_MONOTONIC_RAW);
  const std::uint64_t after = ticks();
  return {before + (after - before) / 2, raw_ns};
}

// Ticks between two moments are linear in time.
std::uint64_t ticks_at(std::int64_t raw_ns, const Moment& from, const Moment& to) {
  const double rate = to.raw_ns > from.raw_ns
                          ? static_cast<double>(to.ticks - from.ticks) / static_cast<double>(to.raw_ns - from.raw_ns)
                          : clock_state.ticks_per_second / 1e9;
  const auto after = static_cast<std::int64_t>(static_cast<double>(raw_ns - to.raw_ns) * rate);
  return std::max(to.ticks + static_cast<std::uint64_t>(after), start_ticks);
}

void record_pending() {
  std::sort(pending, pending + pending_count, [](const Switch& a, const Switch& b) {
    return a.ticks != b.ticks ? a.ticks < b.ticks : a.number < b.number;
  });
  for (std::size_t i = 0; i < pending_count; ++i) {
    emit_at(pending[i].ticks, events::ThreadSwitch{.thread = pending[i].thread, .state = pending[i].state});
  }
  pending_count = 0;
}

void add_switch(std::uint64_t at, const Thread& thread, ThreadState does) {
  if (pending_count == most_pending) record_pending();
  const auto number = static_cast<std::uint32_t>(pending_count);
  pending[pending_count++] = {at, static_cast<std::uint32_t>(thread.id), number, does};
}

void record_sums(const Thread& thread, std::uint64_t at, const ThreadSums& sums) {
  emit_at(at, events::ThreadTimes{.thread = static_cast<std::uint32_t>(thread.id),
                                  .running_ns = sums.running_ns,
                                  .waiting_ns = sums.waiting_ns});
}

// A thread has ended; where another one replaces it, there are as many as before.
void ask_for_a_list() { state.next_list_ns = 0; }

// Records the thread's sums if they have changed, and then also how long they had stayed as they were. Returns whether
// the thread has run.
bool take_sums(Thread& thread) {
  std::uint64_t running_ns = 0;
  if (thread.has_sums && state.clock_allowed) {
    const std::uint64_t at = ticks();
    if (!read_running_time(thread.id, running_ns)) {
      ask_for_a_list();
      return false;
    }
    if (running_ns == thread.sums.running_ns) {
      thread.sums_stayed = true;
      thread.read_at = at;
      return false;
    }
  }
  ThreadSums sums;
  std::uint64_t at = 0;
  KeptFile* file = thread.file != 0 ? &kept_files[thread.file - 1].file : nullptr;
  if (!read_sums_of_a_moment(thread.id, file, state.clock_allowed, at, sums)) {
    ask_for_a_list();
    return true;
  }
  const bool changed = !thread.has_sums || sums != thread.sums;
  if (thread.has_sums)
    state.longest_wait_ns = std::max(state.longest_wait_ns, sums.waiting_ns - thread.sums.waiting_ns);
  if (changed) {
    if (thread.sums_stayed) record_sums(thread, thread.read_at, thread.sums);
    record_sums(thread, at, sums);
  }
  thread.sums_stayed = !changed;
  thread.has_sums = true;
  thread.sums = sums;
  thread.read_at = at;
  return changed;
}

void close_ring(Thread& thread) {
  if (!thread.ring.is_open()) return;
  thread.ring.close();
  --state.rings;
}

// Reads the thread's switches. Returns their number.
std::size_t take_switches(Thread& thread, const Moment& now, bool records) {
  std::size_t count = 0;
  thread.ring.read([&](SwitchRing::Record record, std::int64_t raw_ns) {
    ++count;
    if (!records || record == SwitchRing::Record::lost) {
      thread.is_cut = true;
      thread.is_off = false;
      return;
    }
    if (thread.is_cut) add_switch(thread.known_until, thread, ThreadState::unknown);
    thread.is_cut = false;
    const std::uint64_t at = ticks_at(raw_ns, state.last, now);
    thread.is_off = record != SwitchRing::Record::in;
    thread.switched_at = at;
    add_switch(at, thread,
               record == SwitchRing::Record::in    ? ThreadState::running
               : record == SwitchRing::Record::out ? ThreadState::blocked
                                                   : ThreadState::waiting);
    thread.known_until = at;
  });
  if (count == 0 && !thread.is_cut) thread.known_until = now.ticks;
  return count;
}

void end_thread(const Thread& old, const Moment& now, bool records) {
  if (old.is_recorders) return;
  Thread thread = old;
  if (thread.ring.is_open()) take_switches(thread, now, records);
  // The kernel does not record the switch at the end: it came after all that is known of the thread.
  if (records) add_switch(std::max({thread.switched_at, thread.read_at, thread.found_at}), thread, ThreadState::ended);
  close_ring(thread);
  if (thread.file == 0) return;
  kept_files[thread.file - 1].file.close();
  kept_files[thread.file - 1].in_use = false;
}

// The recorder's own threads say nothing about the program.
bool is_recorders(pid_t id, const char* name) {
  if (id == session.owner) return false;
  return strcmp(name, "paceline") == 0 || strcmp(name, "paceline-count") == 0 || strcmp(name, "paceline-clock") == 0 ||
         strcmp(name, "paceline-cupti") == 0;
}

void find_thread(Thread& thread, pid_t id, bool records) {
  thread = {};
  thread.id = id;
  events::ThreadFound found{.thread = static_cast<std::uint32_t>(id)};
  read_thread_name(id, found.name);
  thread.is_recorders = is_recorders(id, found.name);
  if (thread.is_recorders) return;
  const auto unused =
      std::find_if(kept_files, kept_files + most_kept_files, [](const SumsFile& kept) { return !kept.in_use; });
  if (unused != kept_files + most_kept_files && open_thread_sums(id, unused->file)) {
    unused->in_use = true;
    thread.file = static_cast<unsigned>(unused - kept_files) + 1;
  }
  if (state.switches_allowed && state.rings < most_rings && thread.ring.open(id) == 0) ++state.rings;
  thread.known_until = thread.found_at = ticks();
  emit_at(state.listed_at != 0 ? state.listed_at : thread.known_until, found);
  if (state.listed_at == 0 || !records) return;
  // It began after the last list, when its sums were 0.
  thread.has_sums = true;
  thread.read_at = state.listed_at;
  record_sums(thread, thread.read_at, thread.sums);
}

void list_threads(const Moment& now, bool records) {
  const std::size_t found = state.folder.list(listed);
  if (found == 0) return;
  Thread* before = threads;
  threads = before == tables[0] ? tables[1] : tables[0];
  std::size_t old = 0, kept = 0;
  bool filter_looked_for = false;
  for (std::size_t i = 0; i < found; ++i) {
    while (old < thread_count && before[old].id < listed[i]) end_thread(before[old++], now, records);
    if (old < thread_count && before[old].id == listed[i]) {
      threads[kept++] = before[old++];
    } else {
      // The program may have got a filter since.
      if (!filter_looked_for && state.clock_allowed && has_seccomp_filter()) {
        state.switches_allowed = state.clock_allowed = false;
      }
      filter_looked_for = true;
      find_thread(threads[kept++], listed[i], records);
    }
  }
  while (old < thread_count) end_thread(before[old++], now, records);
  thread_count = kept;
  state.listed_at = now.ticks;
}

void record_sums_alone(Thread& thread) {
  add_switch(thread.known_until, thread, ThreadState::unknown);
  thread.is_off = false;
  close_ring(thread);
}

// Many switches in two windows of a second in a row: the sums alone are recorded from here on. The main thread's
// switches are still recorded if they are not the many ones: its time is what the report divides.
void govern(std::int64_t now_ns) {
  if (now_ns < state.window_end_ns) return;
  const bool first = state.window_end_ns == 0;
  state.busy_windows = state.switches_in_window > most_switches && !first ? state.busy_windows + 1 : 0;
  state.switches_in_window = 0;
  state.window_end_ns = now_ns + second;
  const bool too_many = state.busy_windows >= 2 && state.rings > 0;
  bool keeps_main = false;
  for (std::size_t t = 0; t < thread_count; ++t) {
    const std::uint32_t switches = std::exchange(threads[t].in_window, 0u);
    if (!too_many || !threads[t].ring.is_open()) continue;
    if (threads[t].id == session.owner && switches <= most_switches / 2) {
      keeps_main = true;
    } else {
      record_sums_alone(threads[t]);
    }
  }
  if (!too_many) return;
  state.pace.cost_ns = 0;  // sums cost less
  if (std::exchange(state.switches_allowed, false) && speaks_for_the_job()) {
    say("%s: the threads of this process switch more than %llu times a second; from here on their running and waiting "
        "times are recorded as sums, without each switch%s",
        session.file.path, static_cast<unsigned long long>(most_switches), keeps_main ? " but the main thread's" : "");
  }
}

// Reads how many switches the fullest ring had after `passed_ns`.
void choose_ring_interval(std::int64_t passed_ns) {
  const std::uint64_t calm = calm_switches * static_cast<std::uint64_t>(passed_ns) / second;
  state.ring_interval_ns = state.most_in_ring <= calm ? calm_ring_ns : busy_ring_ns;
  state.most_in_ring = 0;
}

// Where the sums alone are recorded, nothing is known of the time between two turns, so turns may cost twice as much.
std::int64_t turn_interval_ns() {
  const std::int64_t by_cost_ns = state.pace.interval_ns();
  return state.rings > 0 ? std::min(2 * by_cost_ns, state.ring_interval_ns) : by_cost_ns;
}

void take_turn(std::int64_t now_ns, bool last) {
  const std::int64_t before = true_ns(CLOCK_THREAD_CPUTIME_ID);
  std::int64_t looked_ns = 0;  // at other programs, which has a limit of its own
  const bool records = recording();
  const Moment now = now_by_both();
  // What was read in a pause is not in the file.
  if (records && !state.was_recording) {
    for (std::size_t t = 0; t < thread_count; ++t) threads[t].has_sums = false;
  }
  state.was_recording = records;
  // Without a thread that runs, none begins.
  const bool lists = now_ns >= state.next_list_ns && state.active_ns >= state.next_list_ns - list_interval_ns;
  if (const std::uint64_t count = state.folder.count(); count != state.threads_known || lists) {
    state.threads_known = count;
    state.next_list_ns = now_ns + list_interval_ns;
    list_threads(now, records);
  }
  for (std::size_t t = 0; t < thread_count; ++t) {
    Thread& thread = threads[t];
    if (thread.is_recorders) continue;
    const bool has_ring = thread.ring.is_open();
    const std::size_t switches = has_ring ? take_switches(thread, now, records) : 0;
    state.switches_in_window += switches;
    thread.in_window += static_cast<std::uint32_t>(switches);
    state.most_in_ring = std::max(state.most_in_ring, switches);
    // A thread that is off its CPU and did not switch still is.
    const bool ran = records && (!thread.is_off || switches > 0 || !thread.has_sums || last) && take_sums(thread);
    if (ran || switches > 0) state.active_ns = now_ns;
    if (thread.id == session.owner) allow_iteration_sums(state.clock_allowed && !has_ring && !last);
  }
  if (last && records) {
    for (std::size_t t = 0; t < thread_count; ++t) {
      if (threads[t].has_sums && threads[t].sums_stayed) record_sums(threads[t], threads[t].read_at, threads[t].sums);
    }
  }
  govern(now_ns);
  state.waited_ns += std::exchange(state.longest_wait_ns, std::uint64_t{0});
  if (const std::int64_t passed_ns = now_ns - state.waits_since_ns; passed_ns >= starving_window_ns) {
    const bool starves =
        std::exchange(state.waited_ns, std::uint64_t{0}) * starving_share > static_cast<std::uint64_t>(passed_ns);
    if (records && starves) looked_ns = look_for_other_programs(now_ns);
    state.waits_since_ns = now_ns;
  }
  record_pending();
  choose_ring_interval(now.raw_ns - state.last.raw_ns);
  state.last = now;
  if (records) state.pace.add_cost(true_ns(CLOCK_THREAD_CPUTIME_ID) - before - looked_ns);
}

std::int64_t turn_if_due(std::int64_t now_ns) {
  if (now_ns < state.next_turn_ns) return state.next_turn_ns;
  // Where threads wait for room, nothing may be dropped, and the drain cannot wait: it makes the room. It takes the
  // room of a turn before it reads anything; what it does not read now it reads in the next turn.
  if (settings.lossless && !has_room(slots_of_a_turn) &&
      next_chunk(slots_of_a_turn, Priority::none, false) == nullptr) {
    return state.next_turn_ns = now_ns + turn_interval_ns();
  }
  take_turn(now_ns, false);
  const std::int64_t quiet_ns = std::min(2 * (now_ns - state.active_ns), idle_interval_ns);
  return state.next_turn_ns = monotonic_ns() + std::max(turn_interval_ns(), quiet_ns);
}

std::int64_t tick(std::int64_t now_ns) {
  if (wanted == Wanted::nothing) return never;
  std::uint32_t nobody = 0;  // `state` belongs to whoever has the turn: at first the thread that starts the recording
  if (!in_turn.compare_exchange_strong(nobody, 1, std::memory_order_acquire)) return now_ns + shortest_interval_ns;
  const std::int64_t next_ns = turn_if_due(now_ns);
  in_turn.store(0, std::memory_order_release);
  return next_ns;
}

void read_wish() {
  const char* text = text_or(record::env_scheduler, "");
  wanted = strcmp(text, "0") == 0 ? Wanted::nothing : strcmp(text, "sums") == 0 ? Wanted::sums : Wanted::switches;
}

// Finds out what the system allows, with the calling thread.
void start_recording() {
  if (wanted == Wanted::nothing) return;
  state = {};
  thread_count = pending_count = 0;
  start_other_programs();
  if (!state.folder.open())
    return record_setting("scheduler", "nothing: /proc does not show the threads of this process");
  state.last = now_by_both();
  state.clock_allowed = !has_seccomp_filter();
  char text[128] = "sums: asked for";
  if (wanted == Wanted::switches) {
    int error = 0;
    if (state.clock_allowed) {
      SwitchRing ring;
      error = ring.open(static_cast<pid_t>(syscall(SYS_gettid)));
      ring.close();
      state.switches_allowed = error == 0;
      snprintf(text, sizeof text, error == 0 ? "switches" : "sums: perf_event_open: %s", strerror(error));
    } else {
      snprintf(text, sizeof text, "sums: a seccomp filter applies");
    }
  }
  record_setting("scheduler", text);
  if (wanted == Wanted::switches && !state.switches_allowed && speaks_for_the_job()) {
    say("%s: running and waiting times of threads are recorded as %s", session.file.path, text);
  }
  in_turn.store(0, std::memory_order_release);
}

void close_files() {
  for (SumsFile& kept : kept_files) {
    if (kept.in_use) kept.file.close();
    kept.in_use = false;
  }
  state.folder.close();
}

// The last turn, which waits no longer than a second for one in progress.
void end_recording() {
  if (wanted == Wanted::nothing || !state.folder.is_open()) return;
  const std::int64_t deadline = monotonic_ns() + second;
  std::uint32_t nobody = 0;
  while (!in_turn.compare_exchange_weak(nobody, 1, std::memory_order_acquire)) {
    if (monotonic_ns() > deadline) return;
    nobody = 0;
    usleep(100);
  }
  take_turn(monotonic_ns(), true);
  for (std::size_t t = 0; t < thread_count; ++t) close_ring(threads[t]);
  close_files();
}

// The rings belong to the parent, and so do the files.
void reset_in_child() {
  thread_count = 0;
  in_turn.store(1);
  forget_iteration_sums();
  close_files();
}

}  // namespace

const Source scheduler_source = {
    .start = read_wish,
    .opened = start_recording,
    .tick = tick,
    .close = end_recording,
    .reset_in_child = reset_in_child,
};

}  // namespace paceline::inject
