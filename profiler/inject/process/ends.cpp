// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/ends.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>

#include "profiler/inject/buffer/session.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/drain.h"

namespace paceline::inject {
namespace {

std::uint32_t on_before = 0, open_before = 0;
std::atomic<int> noted_status{0};

std::uint32_t exchange(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  return word.exchange(value, std::memory_order_acq_rel);
}

bool is_free(const format::ChunkHeader& chunk) {
  return std::atomic_ref<const std::uint32_t>(chunk.state).load(std::memory_order_acquire) ==
         static_cast<std::uint32_t>(format::ChunkState::free);
}

// True for a whole unit without events. A divided unit keeps its pages, because they must stay valid if exec fails.
bool is_free_unit(std::uint32_t unit) {
  const format::ChunkHeader* first = session.file.chunk_at(unit * format::pages_per_chunk);
  return is_free(*first) && first->pages == 0;
}

// Gives the disk space of empty units back. It does so for runs of units, because a system call for each would be slow.
void punch_free_units() {
  stop_populating();
  const std::uint32_t units = session.file.chunks;
  for (std::uint32_t first = 0, next = 0; first < units; first = next + 1) {
    for (next = first; next < units && session.allocated.holds(next) && is_free_unit(next);) ++next;
    if (next > first) punch_live_area(session.file, first, next - first);
  }
}

// Undoes it. Returns false if the disk is full.
bool allocate_again() {
  for (std::uint32_t unit = 0; unit < session.file.chunks; ++unit) {
    if (session.allocated.holds(unit) && allocate_live_area(session.file, unit) != 0) return false;
  }
  return true;
}

bool is_recorded_here() {
  return session.file.header != nullptr && session.owner == getpid() && gate.open.load(std::memory_order_acquire) != 0;
}

}  // namespace

void note_exit_status(int status) {
  constexpr int kept_by_the_system = 0xff;
  if (session.owner == getpid()) noted_status.store(status & kept_by_the_system, std::memory_order_relaxed);
}

int exit_status() { return noted_status.load(std::memory_order_relaxed); }

void end_at_once() {
  if (session.file.header == nullptr || session.owner != getpid()) return;
  constexpr std::int64_t longest_wait_ns = 10'000'000'000;
  const int error = errno;
  if (is_recorded_here() && !let_drain_close(longest_wait_ns)) {
    gate.on.store(0, std::memory_order_relaxed);
    gate.accepting.store(0, std::memory_order_relaxed);
    punch_free_units();
    std::atomic_ref<std::uint32_t>(session.file.header->closed).store(1, std::memory_order_release);
  }
  errno = error;
}

bool pause_for_exec() {
  if (!is_recorded_here()) return false;
  on_before = exchange(gate.on, 0);
  open_before = exchange(gate.open, 0);
  exchange(gate.accepting, 0);
  punch_free_units();
  std::atomic_ref<std::uint32_t>(session.file.header->closed).store(1, std::memory_order_release);
  return true;
}

void resume_after_failed_exec() {
  std::atomic_ref<std::uint32_t>(session.file.header->closed).store(0, std::memory_order_release);
  // Without space on the disk a write to the live area would kill the program.
  if (!allocate_again()) return;
  exchange(gate.accepting, 1);
  exchange(gate.open, open_before);
  exchange(gate.on, on_before);
}

}  // namespace paceline::inject
