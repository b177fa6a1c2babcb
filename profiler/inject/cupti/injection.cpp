// SPDX-License-Identifier: Apache-2.0
// CUDA as an event source: CUPTI's activity records.
//
// `paceline record` sets CUDA_INJECTION64_PATH to this library, so the driver loads it when it is initialised and calls
// InitializeInjection. A program that never uses CUDA never loads it. It finds the recorder's table (event_sink.h) and
// loads CUPTI. From then on
//   - CUPTI, in the program's calls, takes an empty buffer (request) and returns a full one (complete): a few
//     instructions each;
//   - the recorder's thread, which sleeps in between, asks CUPTI ten times per second for complete buffers, reads both
//     clocks and writes the records as events. CUPTI keeps a buffer back while any of its records is incomplete, such
//     as that of a kernel that runs or waits in a queue. So a killed process loses the last 0.1 s of its device's work,
//     and of a device that is never idle the buffer that was being filled;
//   - if a buffer stays away for ten seconds, a kernel hangs or the device has little work: the thread asks for all
//     records. The few that are incomplete then are counted as dropped;
//   - at exit the thread asks for all remaining records;
//   - while the program uses CUPTI itself, it has it alone (lending.h).
// A failure is reported in one line, and the program goes on without a recording of CUDA.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <span>

#include "profiler/format/event.h"
#include "profiler/format/layout.h"
#include "profiler/inject/cupti/buffers.h"
#include "profiler/inject/cupti/cupti_library.h"
#include "profiler/inject/cupti/lending.h"
#include "profiler/inject/cupti/quiet_calls.h"
#include "profiler/inject/cupti/transcoder.h"
#include "profiler/inject/find_event_sink.h"
#include "profiler/inject/sink_events.h"
#include "profiler/launch/environment.h"

namespace paceline::inject::cupti {
namespace {

constexpr long flush_interval_ns = 100'000'000;
constexpr unsigned rounds_of_a_stall = 100;  // of flush_interval_ns, without a buffer from CUPTI while it has one
constexpr std::uint32_t null_buffers_are_safe_from = 27;  // CUPTI of CUDA 12.9; older ones may crash (Kineto's guard)

const paceline_event_sink_v1* sink = nullptr;
CuptiLibrary cupti;
CUpti_SubscriberHandle subscriber = nullptr;
BufferPool buffers;
pid_t owner = 0;
std::atomic<std::uint32_t> wakeups{0};  // a futex: their number
std::atomic<std::uint32_t> ended{0};    // a futex: 1 when the thread has ended
pthread_t thread;
std::atomic<bool> finishing{false};
pthread_mutex_t use = PTHREAD_MUTEX_INITIALIZER;  // of CUPTI's activities: by the recorder's thread or by the program
Lending lending;
std::uint64_t lent_at = 0, lent_ticks = 0;         // since when, and how long before that
std::atomic<std::uint32_t> taken{0}, returned{0};  // number of buffers that CUPTI has taken and returned

// Built in place and never destroyed, because CUPTI may call until the process ends.
alignas(Timestamps) std::byte timestamps_place[sizeof(Timestamps)];
alignas(Transcoder) std::byte transcoder_place[sizeof(Transcoder)];
Timestamps* timestamps = nullptr;
Transcoder* transcoder = nullptr;

__attribute__((format(printf, 1, 2))) void say(const char* format, ...) {
  char line[1792];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  sink->say(line);
}

// Sleeps until the number is not `seen` any more, or until the given time of CLOCK_MONOTONIC. Returns false at that
// time. It uses the futex directly, because the library's functions for this are newer than the systems that load this
// library.
bool sleep_while(std::atomic<std::uint32_t>& number, std::uint32_t seen, const timespec& until) {
  while (number.load(std::memory_order_acquire) == seen) {
    const long result =
        syscall(SYS_futex, &number, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result != 0 && errno == ETIMEDOUT) return false;
  }
  return true;
}
void add_one(std::atomic<std::uint32_t>& number) {
  number.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &number, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void count_lost(std::uint64_t events) { sink->dropped(static_cast<std::uint32_t>(format::DropCause::device), events); }

// --- what CUPTI calls

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *most_records = 0;  // as many as fit
  *size = BufferPool::buffer_bytes;
  *buffer = buffers.take();
  if (*buffer != nullptr) {
    taken.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  add_one(wakeups);
  if (cupti.version >= null_buffers_are_safe_from) {
    count_lost(1);  // at least: CUPTI's own count is added at exit
    return;
  }
  // The records of this buffer are not read, which is better than a crash.
  void* spare = mmap(nullptr, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (spare != MAP_FAILED) *buffer = static_cast<std::uint8_t*>(spare);
}

void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size, std::size_t valid_bytes) {
  if (buffer == nullptr) return;
  if (!buffers.put_full(buffer, valid_bytes)) {
    count_lost(1);
    if (cupti.version < null_buffers_are_safe_from) munmap(buffer, size);  // a spare one
    return;
  }
  returned.fetch_add(1, std::memory_order_relaxed);
  add_one(wakeups);
}

// NVTX names streams and contexts by the driver's handles, while CUPTI's records have numbers. Both are known together
// only when a stream or context is created.
void CUPTIAPI note_handle(void*, CUpti_CallbackDomain domain, CUpti_CallbackId what, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || data == nullptr) return;
  const auto& made = *static_cast<const CUpti_ResourceData*>(data);
  const bool is_stream = what == CUPTI_CBID_RESOURCE_STREAM_CREATED;
  if (!is_stream && what != CUPTI_CBID_RESOURCE_CONTEXT_CREATED) return;
  std::uint32_t context = 0, stream = ~std::uint32_t{0};
  if (cupti.get_context_id(made.context, &context) != CUPTI_SUCCESS) return;
  if (is_stream && cupti.get_stream_id(made.context, made.resourceHandle.stream, 0, &stream) != CUPTI_SUCCESS) return;
  const void* const handle = is_stream ? static_cast<const void*>(made.resourceHandle.stream) : made.context;
  define_in(*sink, events::CudaHandle{
                       .context = context, .stream = stream, .handle = reinterpret_cast<std::uintptr_t>(handle)});
}

void follow_handles() {
  if (cupti.enable_callback == nullptr || cupti.get_context_id == nullptr || cupti.get_stream_id == nullptr) return;
  for (const CUpti_CallbackId made : {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED}) {
    cupti.enable_callback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, made);
  }
}

const char* call_name(bool driver, std::uint32_t call) {
  const char* name = nullptr;
  const auto domain = driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
  return cupti.get_callback_name(domain, call, &name) == CUPTI_SUCCESS ? name : nullptr;
}

// --- having CUPTI: for the first time, and again after the program has used it

bool wants_graph_nodes() {
  const char* wanted = getenv(record::env_cuda_graphs);
  return wanted != nullptr && strcmp(wanted, "nodes") == 0;
}

// A CUPTI that is too new for the driver refuses here.
CuptiVerdict subscribe(CuptiLibrary& library, char* why, std::size_t capacity) {
  const CUptiResult result = library.subscribe(&subscriber, note_handle, nullptr);
  if (result == CUPTI_SUCCESS) return CuptiVerdict::use;
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    snprintf(why, capacity,
             "another tool (Nsight Systems, a debugger, PyTorch's profiler) has taken CUPTI, which serves one at a "
             "time; all else is recorded");
    return CuptiVerdict::use_none;
  }
  snprintf(why, capacity, "%s: cuptiSubscribe: %s: name the CUPTI of the driver's version with PACELINE_CUPTI",
           library.path, library.name_of(result));
  return CuptiVerdict::try_another;
}

struct Kind {
  CUpti_ActivityKind kind;
  const char* what;
};
constexpr Kind kinds[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels"},
    {CUPTI_ACTIVITY_KIND_RUNTIME, "calls of the runtime"},
    {CUPTI_ACTIVITY_KIND_DRIVER, "calls of the driver"},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between devices"},
    {CUPTI_ACTIVITY_KIND_MEMSET, "fills"},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "synchronisation"},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, "overhead"},
    {CUPTI_ACTIVITY_KIND_CONTEXT, "contexts"},
};

void leave_out(bool driver, std::uint32_t call) {
  transcoder->leave_out(driver, call);  // a call may be in progress
  (driver ? cupti.enable_driver_call : cupti.enable_runtime_call)(call, 0);
}

// Reports failures. Returns false if not even kernels can be recorded.
bool enable_kinds() {
  char missing[256] = "";
  CUptiResult last = CUPTI_SUCCESS;
  const bool filters_calls = cupti.enable_runtime_call != nullptr && cupti.enable_driver_call != nullptr;
  for (const Kind& kind : kinds) {
    const bool is_call = kind.kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind.kind == CUPTI_ACTIVITY_KIND_DRIVER;
    if (is_call && !filters_calls) continue;
    const CUptiResult result = cupti.enable(kind.kind);
    if (result == CUPTI_SUCCESS) continue;
    last = result;
    if (&kind == kinds) {
      say("CUDA is not recorded: cuptiActivityEnable: %s", cupti.name_of(result));
      return false;
    }
    const std::size_t at = strlen(missing);
    snprintf(missing + at, sizeof missing - at, "%s%s", at > 0 ? ", " : "", kind.what);
  }
  // One record for a whole graph instead of one for each node, so the cost does not depend on the number of nodes.
  if (!wants_graph_nodes()) cupti.enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  if (missing[0] != '\0') say("of CUDA, not recorded: %s: cuptiActivityEnable: %s", missing, cupti.name_of(last));
  if (!filters_calls) {
    say("of CUDA, calls of the runtime and the driver are not recorded: CUPTI before CUDA 12.5 cannot leave out the "
        "calls "
        "with which programs poll, and these would displace all other records");
    return true;
  }
  // Called after the kinds are enabled, because that enables all calls.
  for (const std::uint32_t call : quiet_runtime_calls) leave_out(false, call);
  for (const std::uint32_t call : quiet_driver_calls) leave_out(true, call);
  return true;
}

void note_setting(const char* key, const char* value) {
  define_in(*sink, events::Setting{.key = sink->intern(key, strlen(key)), .value = sink->intern(value, strlen(value))});
}

// Everything that CUPTI keeps for its user. Returns false after one line if CUDA cannot be recorded.
bool take_activities() {
  std::uint8_t zeroed = 1;
  std::size_t size = sizeof zeroed;
  cupti.set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
#if CUPTI_API_VERSION >= 24
  // A program with thousands of threads would hold a buffer for each of them.
  std::uint8_t per_thread = 0;
  size = sizeof per_thread;
  cupti.set_attribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &per_thread);
#endif
  cupti.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  const CUptiResult registered = cupti.register_callbacks(request, complete);
  if (registered != CUPTI_SUCCESS) {
    say("CUDA is not recorded: cuptiActivityRegisterCallbacks: %s", cupti.name_of(registered));
    return false;
  }
  return enable_kinds();
}

void release_activities() {
  for (const Kind& kind : kinds) cupti.disable(kind.kind);
  cupti.disable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

// Waits until CUPTI has returned all buffers, which it does when the work of the device that they tell of has ended.
void await_buffers(long most_ms) {
  for (long ms = 0; ms < most_ms && taken.load(std::memory_order_relaxed) != returned.load(std::memory_order_relaxed);
       ++ms) {
    cupti.flush_all(0);
    usleep(1000);
  }
}

// As the program would find CUPTI without the recorder, whose buffers all come back here.
void lend() {
  await_buffers(500);  // this comes first: CUPTI completes no record of a kind that is disabled
  release_activities();
  cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  std::uint8_t zeroed = 0;
  std::size_t size = sizeof zeroed;
  cupti.set_attribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed);
  cupti.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
  lent_at = sink->ticks();
  if (lent_ticks == 0) say("CUDA is not recorded while the program uses CUPTI itself, as PyTorch's profiler does");
}

void note_lent() {
  lent_ticks += sink->ticks() - lent_at;
  char ms[24];
  snprintf(ms, sizeof ms, "%.0f", static_cast<double>(lent_ticks) / sink->ticks_per_second() * 1e3);
  note_setting("cuda_lent_ms", ms);
}

void take_back() {
  note_lent();
  if (take_activities()) {
    lending.end();
  } else {
    lent_at = sink->ticks();
    lending.begin();
  }
}

// What the program's own calls of CUPTI bring about, on its threads.
void before_own_call(paceline_cupti_call call) {
  pthread_mutex_lock(&use);
  if (call == paceline_cupti_subscribe && subscriber != nullptr) {
    cupti.unsubscribe(subscriber);
    subscriber = nullptr;
  }
  if (lending.begins_with(call)) {
    lend();
    lending.begin();
  }
  // It may be called in one of CUPTI's own callbacks, where nothing can be flushed.
  if (call == paceline_cupti_finalize && !lending.is_lent()) {
    lent_at = sink->ticks();
    lending.begin();
  }
  pthread_mutex_unlock(&use);
}

void after_own_call(paceline_cupti_call call, std::uint32_t argument, int succeeded) {
  if (succeeded == 0) return;
  pthread_mutex_lock(&use);
  lending.note(call, argument);
  pthread_mutex_unlock(&use);
}

constexpr paceline_cupti_watcher own_calls = {before_own_call, after_own_call};

// --- the recorder's thread

// Takes the mean of the narrowest quarter of 64 readings: a counter may advance by 10 ns at a time (AMD's Zen 4 does),
// so no single reading is more exact. The error is at most half the distance between the ticks around a reading.
void read_clocks() {
  struct Reading {
    std::uint64_t ticks, width, ns;
  } readings[64];
  for (auto& reading : readings) {
    const std::uint64_t before = sink->ticks();
    if (cupti.get_timestamp(&reading.ns) != CUPTI_SUCCESS) return;
    reading.width = sink->ticks() - before;
    reading.ticks = before + reading.width / 2;
  }
  const std::span<Reading> narrow(readings, 16);
  std::ranges::partial_sort(readings, readings + narrow.size(), {}, &Reading::width);
  // The mean distance of the others from the first, by both clocks.
  std::int64_t ticks = 0, ns = 0;
  for (const auto& reading : narrow) {
    ticks += static_cast<std::int64_t>(reading.ticks - narrow[0].ticks);
    ns += static_cast<std::int64_t>(reading.ns - narrow[0].ns);
  }
  const double at = (static_cast<double>(ticks) - static_cast<double>(ns) * sink->ticks_per_second() * 1e-9) /
                    static_cast<double>(narrow.size());
  const std::uint64_t best = narrow[0].ticks + static_cast<std::uint64_t>(std::llround(at));
  timestamps->add(narrow[0].ns, best);
  emit_to(*sink, best, events::CudaClock{.cupti_ns = narrow[0].ns, .width = narrow.back().width});
}

// `keep` is false if the records are from a time that is not recorded.
void write_full_buffers(bool keep) {
  std::size_t valid_bytes = 0;
  while (std::uint8_t* buffer = buffers.take_full(valid_bytes)) {
    CUpti_Activity* record = nullptr;
    while (keep && cupti.get_next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS) transcoder->take(*record);
    buffers.put_free(buffer, valid_bytes);
  }
}

timespec after(const timespec& time, long ns) {
  timespec later{time.tv_sec, time.tv_nsec + ns};
  if (later.tv_nsec >= 1'000'000'000) ++later.tv_sec, later.tv_nsec -= 1'000'000'000;
  return later;
}

void* run(void*) {
  StallWatch watch(rounds_of_a_stall);
  pthread_setname_np(pthread_self(), "paceline-cupti");
  timespec next_flush{};
  clock_gettime(CLOCK_MONOTONIC, &next_flush);
  bool recorded_before = sink->recording() != 0;
  std::uint32_t seen = wakeups.load(std::memory_order_acquire);
  while (!finishing.load(std::memory_order_acquire)) {
    next_flush = after(next_flush, flush_interval_ns);
    while (sleep_while(wakeups, seen, next_flush) && !finishing.load(std::memory_order_acquire)) {
      seen = wakeups.load(std::memory_order_acquire);
      write_full_buffers(recorded_before || sink->recording() != 0);
    }
    if (finishing.load(std::memory_order_acquire)) break;
    pthread_mutex_lock(&use);
    if (lending.is_over()) take_back();
    if (!lending.is_lent()) {
      read_clocks();
      const bool stalled =
          watch.is_stalled(taken.load(std::memory_order_relaxed), returned.load(std::memory_order_relaxed));
      cupti.flush_all(stalled ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    }
    pthread_mutex_unlock(&use);
    // The records of this round began after the last round, when recording may still have been on.
    const bool recorded_now = sink->recording() != 0;
    write_full_buffers(recorded_before || recorded_now);
    recorded_before = recorded_now;
    clock_gettime(CLOCK_MONOTONIC, &next_flush);
  }
  add_one(ended);
  return nullptr;
}

bool start_thread() {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // the mapping guard needs it
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread, nullptr, run, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) say("CUDA is not recorded: no thread for it: %s", strerror(error));
  return error == 0;
}

// At exit() it runs before the CUDA libraries shut down, because it was registered after they started; at _exit() it
// runs when the recorder closes the file.
void finish() {
  if (getpid() != owner || finishing.exchange(true, std::memory_order_acq_rel)) return;
  add_one(wakeups);
  // The thread may be inside CUPTI and wait without end. The end of the program does not wait for it.
  timespec deadline{};
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += 5;
  if (!sleep_while(ended, 0, deadline)) return say("the last events of CUDA are lost: CUPTI did not answer for 5 s");
  pthread_join(thread, nullptr);
  pthread_mutex_lock(&use);
  if (lending.is_lent()) {
    note_lent();
  } else {
    read_clocks();
    const CUptiResult flushed = cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    if (flushed != CUPTI_SUCCESS)
      say("the last events of CUDA may be lost: cuptiActivityFlushAll: %s", cupti.name_of(flushed));
  }
  pthread_mutex_unlock(&use);
  write_full_buffers(true);
  std::size_t left_out = 0;
  if (cupti.get_dropped_records(nullptr, 0, &left_out) == CUPTI_SUCCESS && left_out > 0) count_lost(left_out);
}

// --- starting

void note_library() {
  char version[16];
  snprintf(version, sizeof version, "%u", cupti.version);
  note_setting("cupti", version);
  note_setting("cupti_library", cupti.path);
}

void start() {
  sink = find_event_sink("CUDA");
  if (sink == nullptr || sink->open() == 0) return;
  char why[1536];
  if (!load_cupti(cupti, subscribe, why, sizeof why)) return say("CUDA is not recorded: %s", why);
  if (!buffers.make()) return say("CUDA is not recorded: no memory for its records");
  timestamps = new (timestamps_place) Timestamps(sink->ticks_per_second());
  transcoder = new (transcoder_place) Transcoder(*sink, *timestamps, call_name);
  owner = getpid();
  note_library();
  read_clocks();
  if (take_activities() && start_thread()) {
    follow_handles();
    sink->watch_cupti(&own_calls);
    atexit(finish);
    sink->at_close(finish);
    return;
  }
  release_activities();
  cupti.unsubscribe(subscriber);
}

pthread_once_t started = PTHREAD_ONCE_INIT;

}  // namespace
}  // namespace paceline::inject::cupti

// Called once by the CUDA driver when it is initialised.
extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
  pthread_once(&paceline::inject::cupti::started, paceline::inject::cupti::start);
  return 1;
}
