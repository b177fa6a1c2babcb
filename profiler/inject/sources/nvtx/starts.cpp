#include "profiler/inject/sources/nvtx/starts.h"

#include <link.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiler/inject/core/clock.h"

namespace paceline::inject {
namespace {

constexpr std::int64_t longest_wait_ns = 2'000'000'000;
constexpr unsigned most_copies = 64;

// A start raises its counter and then looks for forks; a fork raises its counter and then looks for starts. So at least
// one of the two sees the other (Dekker's algorithm, with sequentially consistent order).
std::atomic<int> in_progress{0}, forking{0};

// The copies of NVTX in the loaded libraries that were not complete when they were found.
std::atomic<const void*> copies[most_copies];
std::atomic<unsigned> copy_count{0};
std::atomic<bool> searching{false};
std::size_t searched_libraries = 0;  // the first ones of the linker's list
unsigned long long unloads_seen = 0;

// The beginning of nvtxGlobals_t, of NVTX 3's nvtxImpl.h. A program or library that uses NVTX has one of its own.
struct NvtxGlobals {
  unsigned state;
  std::size_t callbacks_size;
  const void* callbacks;
  std::size_t version_size;
};
constexpr unsigned state_fresh = 0, state_started = 1;
constexpr std::size_t callbacks_size = 16, version_size = 24;

bool waits(std::int64_t& give_up) {
  const std::int64_t now = true_ns(CLOCK_MONOTONIC);
  if (give_up == 0) give_up = now + longest_wait_ns;
  if (now >= give_up) return false;
  usleep(20);
  return true;
}

// Not for the sanitizers, which forbid to read between variables.
[[gnu::no_sanitize("address"), gnu::no_sanitize("thread")]] void search_data(std::uintptr_t from, std::uintptr_t to) {
  for (std::uintptr_t at = from; at + sizeof(NvtxGlobals) <= to; at += sizeof(void*)) {
    const auto* globals = reinterpret_cast<const NvtxGlobals*>(at);
    if (globals->callbacks_size != callbacks_size || globals->version_size != version_size) continue;
    if (globals->state > state_started || globals->callbacks == nullptr) continue;
    copies[copy_count.fetch_add(1) % most_copies].store(globals);
  }
}

struct Search {
  std::size_t library = 0;
};

// Called by dl_iterate_phdr for each library, in the order in which they were loaded.
int search_library(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (search.library == 0 && info->dlpi_subs != unloads_seen) {
    unloads_seen = info->dlpi_subs;
    searched_libraries = 0;  // the list is another one
  }
  if (search.library++ < searched_libraries) return 0;
  for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    const std::uintptr_t from = info->dlpi_addr + segment.p_vaddr;
    search_data((from + 7) & ~std::uintptr_t{7}, from + segment.p_filesz);
  }
  return 0;
}

// Cost: reads the initialised data of the libraries that were loaded since the last search.
void search_libraries() {
  for (std::int64_t give_up = 0; searching.exchange(true);) {
    if (!waits(give_up)) return;
  }
  Search search;
  dl_iterate_phdr(search_library, &search);
  searched_libraries = search.library;
  searching.store(false);
}

// By the system: the library that holds this copy of NVTX may have been unloaded.
void set_back(const void* state) {
  unsigned value = 0;
  const iovec here{&value, sizeof value}, there{const_cast<void*>(state), sizeof value};
  if (syscall(SYS_process_vm_readv, getpid(), &here, 1L, &there, 1L, 0L) != sizeof value) return;
  if (value != state_started) return;
  value = state_fresh;
  syscall(SYS_process_vm_writev, getpid(), &here, 1L, &there, 1L, 0L);
}

}  // namespace

StartInProgress::StartInProgress() {
  in_progress.fetch_add(1);
  for (std::int64_t give_up = 0; forking.load() > 0 && waits(give_up);) {
  }
}

StartInProgress::~StartInProgress() { in_progress.fetch_sub(1); }

void wait_for_starts() {
  search_libraries();
  forking.fetch_add(1);
  for (std::int64_t give_up = 0; in_progress.load() > 0;) {
    forking.fetch_sub(1);  // the start must not wait for us meanwhile
    const bool goes_on = waits(give_up);
    forking.fetch_add(1);
    if (!goes_on) break;
  }
}

void fork_is_over() { forking.fetch_sub(1); }

void reset_starts_in_child() {
  const unsigned found = copy_count.load();
  for (unsigned i = 0; i < found && i < most_copies; ++i) set_back(copies[i].load());
  searching = false;
  in_progress = 0;
  forking = 0;
}

}  // namespace paceline::inject
