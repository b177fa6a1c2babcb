#include "profiler/inject/sources/counters/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "profiler/inject/core/names.h"
#include "profiler/inject/core/session.h"
#include "profiler/inject/core/settings.h"
#include "profiler/inject/core/writer.h"
#include "profiler/inject/sources/counters/machine_facts.h"
#include "profiler/inject/system/say.h"

namespace paceline::inject {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr rlim_t fewest_files = 256;
constexpr std::int64_t cost_limit = 100;  // a sampling may take 1/100 of its interval

pthread_t thread;
std::atomic<bool> has_thread{false};
// Threads sleep on these two, by the futex itself (see drain.cpp); each becomes 1 once.
std::atomic<std::uint32_t> finishing{0}, ended{0};
std::int64_t interval_ns = 0;
std::uint64_t moment = 0;
std::uint16_t defined = 0;
bool after_fork = false;

std::int64_t clock_ns(clockid_t clock) { return true_ns(clock); }

// Sleeps until `word` is 1; false: until the deadline, CLOCK_MONOTONIC.
bool wait_for(std::atomic<std::uint32_t>& word, std::int64_t deadline) {
  const timespec at{static_cast<time_t>(deadline / second), static_cast<long>(deadline % second)};
  while (word.load(std::memory_order_acquire) == 0) {
    const long result = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &at, nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result != 0 && errno == ETIMEDOUT) return false;
  }
  return true;
}

void set(std::atomic<std::uint32_t>& word) {
  word.store(1, std::memory_order_release);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void sample(bool gpus) {
  if (!recording()) return;
  begin_moment();
  sample_process();
  sample_network();
  if (gpus) sample_gpus();
}

void* run(void*) {
  pthread_setname_np(pthread_self(), "paceline-count");
  open_process_counters();
  open_network_counters();
  sample(false);
  record_machine_facts();

  // NVML is not begun in a process that is over at once.
  std::int64_t next = clock_ns(CLOCK_MONOTONIC);
  const std::int64_t gpus_from = next + second;
  bool gpus = false;
  std::int64_t cost = 0;  // of a sampling, smoothed
  for (;;) {
    next += interval_ns;
    const std::int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (next < now) next = now;  // what was missed is missed
    const bool ends = wait_for(finishing, next);
    const std::int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    sample(gpus);
    if (ends) break;
    cost += (clock_ns(CLOCK_THREAD_CPUTIME_ID) - before - cost) / 8;
    if (cost * cost_limit > interval_ns) interval_ns *= 2;
    if (!gpus && !after_fork && next >= gpus_from) {
      gpus = true;
      record_gpu_facts();
      open_gpu_counters();
      // After NVML's own, so that it runs before them: no call may be under way when NVML takes itself apart.
      atexit(stop_counters);
    }
  }
  set(ended);
  return nullptr;
}

}  // namespace

void start_counters() {
  if (settings.counters_ns == 0) return;
  interval_ns = settings.counters_ns;
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // mapping_guard.h
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1024 * 1024);  // NVML's needs are not known
  const int error = pthread_create(&thread, &attributes, run, nullptr);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  has_thread.store(error == 0, std::memory_order_release);
  if (error != 0) say("%s: no thread for counters: %s", session.file.path, strerror(error));
}

void stop_counters() {
  if (session.owner != getpid() || !has_thread.exchange(false)) return;
  set(finishing);
  // A driver may hang: the program ends all the same.
  if (wait_for(ended, clock_ns(CLOCK_MONOTONIC) + second)) {
    pthread_join(thread, nullptr);
  } else {
    pthread_detach(thread);
  }
}

void reset_counters_in_child() {
  has_thread.store(false);
  finishing.store(0);
  ended.store(0);
  defined = 0;
  after_fork = true;
  forget_files();
}

std::uint16_t define_counter(std::string_view name, std::string_view unit, std::string_view device, CounterKind kind) {
  if (defined >= most_counters) return 0;
  const std::uint16_t counter = ++defined;
  const std::uint64_t low =
      counter | std::uint64_t{static_cast<std::uint16_t>(kind)} << 16 | std::uint64_t{intern(name)} << 32;
  emit_surely(EventType::counter, low, Slot{intern(unit) | std::uint64_t{intern(device)} << 32, 0});
  return counter;
}

void begin_moment() { moment = ticks(); }
std::uint64_t current_moment() { return moment; }

void record_sample(std::uint16_t counter, std::uint64_t value) { record_sample_at(moment, counter, value); }

void record_sample_at(std::uint64_t at, std::uint16_t counter, std::uint64_t value) {
  if (counter != 0 && recording()) emit_at(at, EventType::sample, counter, Slot{value, 0});
}

int open_high(const char* path, int flags) {
  rlimit limit{};
  struct stat wanted {
  }, opened{}, still{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || stat(path, &wanted) != 0) return -1;
  const int low = ::open(path, O_RDONLY | O_CLOEXEC | flags);
  if (low < 0) return -1;
  const int high = fcntl(low, F_DUPFD_CLOEXEC, limit.rlim_cur < 1024 ? static_cast<int>(limit.rlim_cur / 2) : 512);
  const auto is_it = [&](const struct stat& file) {
    return file.st_dev == wanted.st_dev && file.st_ino == wanted.st_ino;
  };
  // The low number may be the program's by now.
  if (fstat(low, &still) == 0 && is_it(still)) ::close(low);
  if (high < 0 || (fstat(high, &opened) == 0 && is_it(opened))) return high;
  ::close(high);
  return -1;
}

bool KeptFile::open(const char* path) {
  // A program that may have few files needs them itself.
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < fewest_files) return false;
  descriptor = open_high(path);
  struct stat now {};
  if (descriptor < 0 || fstat(descriptor, &now) != 0) return false;
  device = now.st_dev;
  inode = now.st_ino;
  return true;
}

void KeptFile::close() {
  std::uint64_t links = 0;
  if (is_ours(links)) ::close(descriptor);
  descriptor = -1;
}

bool KeptFile::is_ours(std::uint64_t& links) {
  struct stat now {};
  if (descriptor < 0) return false;
  if (fstat(descriptor, &now) != 0 || now.st_dev != device || now.st_ino != inode) {
    descriptor = -1;
    return false;
  }
  links = now.st_nlink;
  return true;
}

std::size_t KeptFile::read(char* out, std::size_t capacity) {
  std::uint64_t links = 0;
  out[0] = '\0';
  if (!is_ours(links)) return 0;
  // A long text comes in pieces of a page, less one line at most; so a small piece is the end, without asking again.
  constexpr ssize_t small = 2048;
  std::size_t size = 0;
  while (size + 1 < capacity) {
    const ssize_t got = pread(descriptor, out + size, capacity - 1 - size, static_cast<off_t>(size));
    if (got > 0) size += static_cast<std::size_t>(got);
    if (got < small) break;
  }
  out[size] = '\0';
  return size;
}

std::uint64_t KeptFile::links() {
  std::uint64_t links = 0;
  return is_ours(links) ? links : 0;
}

std::size_t read_file(const char* path, char* out, std::size_t capacity) {
  out[0] = '\0';
  const int file = open_high(path);
  if (file < 0) return 0;
  std::size_t size = 0;
  while (size + 1 < capacity) {
    const ssize_t got = ::read(file, out + size, capacity - 1 - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  close(file);
  while (size > 0 && out[size - 1] == '\n') --size;
  out[size] = '\0';
  return size;
}

void sysfs_path(char* out, std::size_t capacity, const char* format, ...) {
  const char* root = getenv("PACELINE_TEST_SYSFS");
  const int length = snprintf(out, capacity, "%s/", root != nullptr ? root : "/sys");
  if (length < 0 || static_cast<std::size_t>(length) >= capacity) {
    out[0] = '\0';
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(out + length, capacity - static_cast<std::size_t>(length), format, arguments);
  va_end(arguments);
}

}  // namespace paceline::inject
