#include "profiler/inject/starts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/inject/clock.h"

namespace paceline::inject {
namespace {

constexpr std::int64_t longest_wait_ns = 2'000'000'000;
// After a start NVTX still has to write down that it is complete.
constexpr std::int64_t settling_ns = 300'000;
constexpr int copies = 16;

// A start raises its counter and then looks for forks; a fork raises its counter and then looks for starts. So at least
// one of the two sees the other (Dekker's algorithm, with sequentially consistent order).
std::atomic<int> in_progress{0}, cloning{0};
std::atomic<std::int64_t> latest_end{-settling_ns};
// NVTX's starts that are on their way to us, when the latest began, and where.
std::atomic<int> expected{0};
std::atomic<std::int64_t> expected_since{0};
std::atomic<const void*> callers[copies];
std::atomic<unsigned> next_caller{0};
// The copies of NVTX that have called us; forgotten when they are complete.
std::atomic<const void*> states[copies];
std::atomic<unsigned> next_state{0};

// The beginning of nvtxGlobals_t, of NVTX 3's nvtxImpl.h.
struct NvtxGlobals {
  unsigned state;
  std::size_t callbacks_size;  // the table of callbacks begins here
  const void* callbacks;
  std::size_t version_size;
};
constexpr std::size_t state_before_table = offsetof(NvtxGlobals, callbacks_size);
constexpr unsigned state_fresh = 0, state_started = 1;
constexpr std::size_t callbacks_size = 16, version_size = 24;

// By the system: the library that holds this copy of NVTX may have been unloaded.
bool is_started(const void* state) {
  unsigned value = 0;
  const iovec here{&value, sizeof value}, there{const_cast<void*>(state), sizeof value};
  return syscall(SYS_process_vm_readv, getpid(), &here, 1L, &there, 1L, 0L) == sizeof value && value == state_started;
}

void set_back(const void* state) {
  unsigned value = state_fresh;
  const iovec here{&value, sizeof value}, there{const_cast<void*>(state), sizeof value};
  if (is_started(state)) syscall(SYS_process_vm_writev, getpid(), &here, 1L, &there, 1L, 0L);
}

// Sets back the copies of NVTX that are being started in a stretch of a library's data.
void set_back_within(std::uintptr_t from, std::uintptr_t to) {
  for (std::uintptr_t at = from; at + sizeof(NvtxGlobals) <= to; at += sizeof(void*)) {
    const auto* globals = reinterpret_cast<const NvtxGlobals*>(at);
    if (globals->state == state_started && globals->callbacks_size == callbacks_size &&
        globals->version_size == version_size) {
      set_back(globals);
    }
  }
}

// The library that `caller` is in, by the system's list of mappings: the dynamic linker's lock may have been held by a
// thread that this child does not have. Its data follow its code.
void set_back_library_of(const void* caller) {
  static char text[256 * 1024];
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::size_t size = 0;
  for (ssize_t got; size + 1 < sizeof text && (got = read(file, text + size, sizeof text - 1 - size)) > 0;) {
    size += static_cast<std::size_t>(got);
  }
  close(file);
  text[size] = '\0';
  const char* library = nullptr;
  char* line = text;
  for (char* end = nullptr; (end = strchr(line, '\n')) != nullptr; line = end + 1) {
    *end = '\0';
    unsigned long from = 0, to = 0;
    char rights[8] = "";
    int path_at = 0;
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &from, &to, rights, &path_at) < 3 || line[path_at] == '\0') continue;
    const char* path = line + path_at;
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    if (address >= from && address < to) library = path;
    if (library != nullptr && strcmp(path, library) == 0 && rights[0] == 'r' && rights[1] == 'w') {
      set_back_within(from, to);
    }
  }
}

bool any_start() {
  if (in_progress.load() > 0) return true;
  const std::int64_t now = true_ns(CLOCK_MONOTONIC);
  if (expected.load() > 0) {
    if (now - expected_since.load() < longest_wait_ns) return true;
    expected.store(0);  // whoever asked was no copy of NVTX
  }
  bool any = now - latest_end.load() < settling_ns;
  for (std::atomic<const void*>& state : states) {
    const void* at = state.load();
    if (at == nullptr) continue;
    if (is_started(at)) {
      any = true;
    } else {
      state.store(nullptr);
    }
  }
  return any;
}

void wait_for_forks() {
  if (cloning.load() == 0) return;
  const std::int64_t give_up = true_ns(CLOCK_MONOTONIC) + longest_wait_ns;
  while (cloning.load() > 0 && true_ns(CLOCK_MONOTONIC) < give_up) usleep(20);
}

}  // namespace

StartInProgress::StartInProgress() {
  in_progress.fetch_add(1);
  wait_for_forks();
}

StartInProgress::~StartInProgress() {
  latest_end.store(true_ns(CLOCK_MONOTONIC));
  in_progress.fetch_sub(1);
}

void nvtx_start_began(const void* caller) {
  callers[next_caller.fetch_add(1) % copies].store(caller);
  expected_since.store(true_ns(CLOCK_MONOTONIC));
  expected.fetch_add(1);
  wait_for_forks();
}

void nvtx_start_arrived(const void* callbacks) {
  if (callbacks != nullptr) {
    const void* state = static_cast<const char*>(callbacks) - state_before_table;
    // Only where the memory before the table looks as this version of NVTX has it.
    if (is_started(state)) states[next_state.fetch_add(1) % copies] = state;
  }
  int before = expected.load();
  while (before > 0 && !expected.compare_exchange_weak(before, before - 1)) {
  }
}

void wait_for_starts() {
  cloning.fetch_add(1);
  if (!any_start()) return;
  const std::int64_t give_up = true_ns(CLOCK_MONOTONIC) + longest_wait_ns;
  while (any_start() && true_ns(CLOCK_MONOTONIC) < give_up) {
    cloning.fetch_sub(1);  // the start must not wait for us meanwhile
    usleep(50);
    cloning.fetch_add(1);
  }
}

void fork_is_over() { cloning.fetch_sub(1); }

void reset_starts_in_child() {
  for (std::atomic<const void*>& state : states) {
    if (const void* at = state.exchange(nullptr); at != nullptr) set_back(at);
  }
  const bool any = expected.exchange(0) > 0;
  for (std::atomic<const void*>& caller : callers) {
    if (const void* at = caller.exchange(nullptr); any && at != nullptr) set_back_library_of(at);
  }
  in_progress = 0;
  cloning = 0;
}

}  // namespace paceline::inject
