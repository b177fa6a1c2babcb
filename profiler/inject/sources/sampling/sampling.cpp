// SPDX-License-Identifier: Apache-2.0
// Samples the stacks of threads on a thread of its own: regularly (--sample), or once when a rank hangs (--hang) or
// when another program asks for it (stack_request.h). The program gets no signal: each stack is read while its thread
// goes on.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "profiler/format/stack_request.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/process/children.h"
#include "profiler/inject/sources/sampling/python_stacks.h"
#include "profiler/inject/sources/sampling/thread_activity.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/sources/stacks/loaded_code.h"
#include "profiler/inject/sources/stacks/native_stack.h"
#include "profiler/inject/sources/stacks/program_memory.h"
#include "profiler/inject/sources/stacks/stack_table.h"
#include "profiler/inject/sources/stacks/user_registers.h"
#include "profiler/inject/sources/watch/hang.h"
#include "profiler/inject/system/futex.h"
#include "profiler/inject/system/pace.h"
#include "profiler/inject/system/quiet_thread.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/inject/system/sysfs.h"
#include "profiler/inject/system/system_clock.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

constexpr std::int64_t second = 1'000'000'000;
// What is not asked for must not be felt, also where the ranks use all CPUs.
constexpr Pace usual_pace{.wanted_ns = second / 10, .part = 500};
constexpr std::int64_t usual_most_idle = 4;

constexpr std::int64_t request_interval_ns = 2 * second;

pthread_t thread;
// The drain starts the thread, at any time before the recording ends. The thread has the drain's name from its first
// moment on, by which the other sources know a thread of the recorder: a name that it gave itself would come later.
enum State : std::uint8_t { absent, starting, runs, stopped };
std::atomic<State> state{absent};
// Threads sleep on these two; each becomes 1 once.
std::atomic<std::uint32_t> finishing{0}, ended{0};
Pace pace;                   // 0 = no samples, but those of a hang
std::int64_t most_idle = 1;  // intervals between two samplings of threads that do not run
bool asked_for = false;
bool all_threads = false;
bool thread_is_due = false;

char request_path[4096];
std::int64_t request_served = 0;  // its time of change; 0 = there is none
std::int64_t next_request_look_ns = 0;

ProgramMemory memory;

// How often a thread that runs Python is asked for its registers. The answer interrupts the CPU on which it runs. Where
// sampling costs too much, nine of ten stacks of Python go without it before there are still fewer samples.
std::int64_t python_ask_interval_ns = 0;

struct Watched {
  pid_t thread = 0;
  bool there = false;
  ThreadWatch watch;
  UserRegisters registers;
  bool tried = false;  // to open them
  // Samples of the running thread that wait for its registers. Where they do not come, the thread did not run, and is
  // in the same place in all of them.
  struct Waiting {
    std::uint64_t at;
    std::int64_t period_ns;
    std::uint32_t python_stack;
  };
  static constexpr unsigned most_waiting = 8;
  Waiting waiting[most_waiting];
  unsigned waiting_count = 0;
  std::int64_t next_ask_ns = 0;  // while the thread runs Python
  std::uint64_t turns = 0;       // on a CPU, until the latest sample

  void close() {
    watch.close();
    registers.close();
    tried = false;
    waiting_count = 0;
    next_ask_ns = 0;
    turns = 0;
  }
};
constexpr unsigned most_threads = 64;
Watched watched[most_threads];
unsigned watched_count = 0;

bool wait_for(std::atomic<std::uint32_t>& word, std::int64_t deadline) {
  while (word.load(std::memory_order_acquire) == 0) {
    if (!wait_while(word, 0, deadline)) return false;
  }
  return true;
}

void set(std::atomic<std::uint32_t>& word) {
  word.store(1, std::memory_order_release);
  wake_one(word);
}

bool registers_refused = false;

void open_registers(Watched& of) {
  if (of.tried || registers_refused) return;
  of.tried = true;
  const int error = has_seccomp_filter() ? EACCES : of.registers.open(of.thread);
  // Of all the threads that are sampled, some may find no memory for a ring any more (EPERM).
  if (error == 0 || (error == EPERM && of.thread != session.owner)) return;
  registers_refused = true;
  // By default it is said that the scheduler's switches are refused, for the same reason.
  if (!asked_for) return;
  say("%s: stacks of running threads lack functions of C and C++: the system does not say where threads are (%s)",
      session.file.path, error == EACCES ? "perf_event_open is not allowed" : strerror(error));
}

void watch_thread(pid_t id) {
  for (unsigned i = 0; i < watched_count; ++i) {
    if (watched[i].thread != id) continue;
    watched[i].there = true;
    return;
  }
  if (watched_count == most_threads) return;
  Watched& fresh = watched[watched_count++];
  fresh.thread = id;
  fresh.there = true;
  fresh.watch.open(id);
}

bool is_of_recorder(const char* id) {
  char path[320], name[32];
  snprintf(path, sizeof path, "/proc/self/task/%s/comm", id);
  return read_file_high(path, name, sizeof name) > 0 && strncmp(name, "paceline", strlen("paceline")) == 0;
}

void emit_sample(pid_t thread, std::uint64_t at, std::int64_t period_ns, std::uint32_t stack) {
  emit_at(at, events::StackSample{.thread_id = static_cast<std::uint32_t>(thread),
                                  .stack = stack,
                                  .period_ns = static_cast<std::uint64_t>(period_ns)});
}

// `registers` are nullptr where they are not known.
void emit_waiting(Watched& of, const NativeRegisters* registers) {
  for (unsigned i = 0; i < of.waiting_count; ++i) {
    const Watched::Waiting& sample = of.waiting[i];
    const std::uint32_t outer = sample.python_stack;
    emit_sample(of.thread, sample.at, sample.period_ns,
                registers == nullptr ? outer : native_stack(memory, outer, python_code(), false, *registers));
  }
  of.waiting_count = 0;
}

// Returns whether the thread has run since its last sample.
bool sample_thread(Watched& of, std::int64_t period_ns) {
  NativeRegisters registers;
  memory.forget_pages();
  if (of.waiting_count > 0 && of.registers.take(registers)) emit_waiting(of, &registers);
  const std::uint64_t at = ticks(), turns = of.watch.turns();
  const bool same_turn = turns != 0 && turns == std::exchange(of.turns, turns);
  ThreadActivity activity = of.watch.now(memory);
  if (activity.runs) open_registers(of);
  const std::int64_t now_ns = monotonic_ns();
  if (activity.runs || !same_turn) look_for_other_libraries(memory, now_ns);
  const bool asks = activity.runs && of.registers.is_open() && (of.waiting_count > 0 || now_ns >= of.next_ask_ns);
  if (!asks || of.waiting_count == Watched::most_waiting) emit_waiting(of, nullptr);
  if (asks && of.waiting_count == 0) of.registers.ask();
  std::uint32_t stack = python_stack(memory, of.thread);
  of.next_ask_ns = stack == 0 ? 0 : asks ? now_ns + python_ask_interval_ns : of.next_ask_ns;
  if (asks) {
    of.waiting[of.waiting_count++] = {at, period_ns, stack};
    return true;
  }
  if (activity.registers.instruction != 0) stack = native_stack(memory, stack, python_code(), true, activity.registers);
  if (activity.futex != 0) activity.call.file = holder_of_python_lock(memory, activity.futex);
  if (activity.call.function != 0) stack = stack_below(stack, activity.call);
  emit_sample(of.thread, at, period_ns, stack);
  return activity.runs || !same_turn;
}

// Finds the threads that began and ended since the last call.
void find_threads(bool all) {
  for (unsigned i = 0; i < watched_count; ++i) watched[i].there = false;
  watch_thread(session.owner);
  if (all) {
    each_entry("/proc/self/task", [](const char* id) {
      const auto number = static_cast<pid_t>(strtol(id, nullptr, 10));
      const auto known = [&](const Watched& one) { return one.thread == number; };
      if (std::any_of(watched, watched + watched_count, known) || !is_of_recorder(id)) watch_thread(number);
    });
  }
  for (unsigned i = 0; i < watched_count;) {
    if (watched[i].there) {
      ++i;
      continue;
    }
    emit_waiting(watched[i], nullptr);
    watched[i].close();
    std::swap(watched[i], watched[--watched_count]);
  }
}

void sample_standstill() {
  static std::uint32_t served = 0;
  const std::uint32_t noticed = standstills.load(std::memory_order_relaxed);
  if (noticed == served || !recording()) return;
  served = noticed;
  look_for_python(memory);
  find_threads(true);
  for (unsigned i = 0; i < watched_count; ++i) sample_thread(watched[i], 0);
  const auto wait_for_registers = [](Watched& of) {
    constexpr int most_ms = 20;
    NativeRegisters registers;
    bool came = false;
    for (int i = 0; i < most_ms && of.waiting_count > 0 && !(came = of.registers.take(registers)); ++i) usleep(1000);
    emit_waiting(of, came ? &registers : nullptr);
  };
  for (unsigned i = 0; i < watched_count; ++i) wait_for_registers(watched[i]);
  find_threads(all_threads);
}

void* run(void*) {
  // Without being asked, by no system call that a program's own filter may not expect later.
  if (!memory.open(asked_for) && speaks_for_the_job()) {
    say("%s: no stacks of functions: the process cannot read its own memory (/proc/self/mem: %s)", session.file.path,
        strerror(errno));
  }
  const bool samples = pace.wanted_ns > 0;
  std::int64_t next = monotonic_ns(), next_search = next, latest = next, idle = 1;
  std::uint64_t random = static_cast<std::uint64_t>(next);
  for (;;) {
    // Not in step with the program: each interval is another one, by up to an eighth.
    random = random * 6364136223846793005 + 1442695040888963407;
    const std::int64_t interval_ns = samples ? pace.interval_ns() : second / 2;
    const std::int64_t step =
        idle * (interval_ns + (static_cast<std::int64_t>(random >> 40) - (1 << 23)) * (interval_ns / 8) / (1 << 23));
    next += step;
    if (const std::int64_t now = monotonic_ns(); next <= now)
      next = now + step;  // samplings that were missed are skipped
    if (wait_for(finishing, next)) break;
    const std::int64_t before = true_ns(CLOCK_THREAD_CPUTIME_ID), now = monotonic_ns();
    sample_standstill();
    const bool records = samples && recording();
    if (records) {
      if (now >= next_search) {
        look_for_python(memory);
        find_threads(all_threads);
        next_search = now + (all_threads ? second / 10 : second);
      }
      idle = std::min(2 * idle, most_idle);
      for (unsigned i = 0; i < watched_count; ++i) {
        if (sample_thread(watched[i], std::min(now - latest, second))) idle = 1;
      }
    }
    latest = now;
    if (!records) continue;  // a turn of a pause costs nothing, and says nothing about the others
    pace.add_cost(true_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    python_ask_interval_ns = pace.interval_ns() > pace.wanted_ns ? 10 * pace.interval_ns() : 0;
  }
  for (unsigned i = 0; i < watched_count; ++i) emit_waiting(watched[i], nullptr);
  set(ended);
  return nullptr;
}

void read_options() {
  constexpr std::uint64_t a_day = 86'400'000'000;
  const std::uint64_t usual_us = usual_pace.wanted_ns / 1000, us = number_or(record::env_sample_us, usual_us);
  asked_for = *text_or(record::env_sample_us, "") != '\0';
  pace = asked_for ? Pace{.wanted_ns = static_cast<std::int64_t>(std::min(us, a_day) * 1000), .part = 20} : usual_pace;
  most_idle = asked_for ? 1 : usual_most_idle;
  all_threads = strcmp(text_or(record::env_sample_threads, ""), "all") == 0;
}

void start_thread() {
  State before = absent;
  if (!state.compare_exchange_strong(before, starting)) return;
  constexpr std::size_t stack_bytes = 256 * 1024;
  const int error = start_quiet_thread(thread, run, stack_bytes);
  state.store(error == 0 ? runs : absent);
  if (error != 0) say("%s: no thread for samples of stacks: %s", session.file.path, strerror(error));
}

// The time of change of the file that asks for stacks, 0 without it. Cost: one system call; a look at the server if the
// directory is on a network.
std::int64_t request_time() {
  struct stat found {};
  if (request_path[0] == '\0' || stat(request_path, &found) != 0) return 0;
  return found.st_mtim.tv_sec * second + found.st_mtim.tv_nsec;
}

std::int64_t look_for_request(std::int64_t now_ns) {
  if (std::exchange(thread_is_due, false)) start_thread();
  if (now_ns < next_request_look_ns) return next_request_look_ns;
  if (const std::int64_t time = request_time(); time != request_served) {
    request_served = time;
    if (time != 0) {
      standstills.fetch_add(1, std::memory_order_relaxed);
      start_thread();
    }
  }
  return next_request_look_ns = now_ns + request_interval_ns;
}

// Before the drain runs, which starts the thread and looks for requests.
void prepare_sampling() {
  const char* slash = strrchr(session.file.path, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash - session.file.path) + 1;
  const int length =
      snprintf(request_path, sizeof request_path, "%.*s%s", folder, session.file.path, format::stack_request_name);
  if (length >= static_cast<int>(sizeof request_path)) request_path[0] = '\0';
  request_served = request_time();
  thread_is_due = pace.wanted_ns > 0 || watches_for_hangs();
}

// Ends the thread, which it waits for no longer than a second. Harmless when called twice, or in a child.
void stop_sampling() {
  if (session.owner != getpid()) return;
  State before = state.load();
  while (before == starting || !state.compare_exchange_weak(before, stopped)) {
    usleep(100);
    before = state.load();
  }
  if (before != runs) return;
  set(finishing);
  if (wait_for(ended, monotonic_ns() + second)) {
    pthread_join(thread, nullptr);
  } else {
    pthread_detach(thread);
  }
}

void reset_sampling_in_child() {
  state.store(absent);
  thread_is_due = false;
  next_request_look_ns = 0;
  finishing.store(0);
  ended.store(0);
  for (unsigned i = 0; i < watched_count; ++i) watched[i].close();
  watched_count = 0;
  registers_refused = false;
  memory.close();
  forget_stacks();
  forget_python();
  forget_loaded_code();
  forget_files_of_calls();
}

}  // namespace

const Source sampling_source = {
    .start = read_options,
    .open = prepare_sampling,
    .tick = look_for_request,
    .close = stop_sampling,
    .reset_in_child = reset_sampling_in_child,
};

}  // namespace paceline::inject
