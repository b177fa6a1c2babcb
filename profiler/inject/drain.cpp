#include "profiler/inject/drain.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "profiler/format/block.h"
#include "profiler/inject/clock_exchange.h"
#include "profiler/inject/recorder.h"
#include "profiler/inject/say.h"
#include "profiler/inject/session.h"

namespace paceline::inject {
namespace {

using format::ChunkHeader;
using format::ChunkState;

sem_t wakeups;
std::atomic<bool> sleeping{false};
std::atomic<bool> finishing{false};
pthread_t thread;
bool has_thread = false;
bool disk_complained = false;

// The encoder lives in place, never destroyed: this library must not run a destructor while others still record.
alignas(format::BlockEncoder) std::byte encoder_place[sizeof(format::BlockEncoder)];
format::BlockEncoder* encoder = nullptr;

std::uint64_t count_events(const Slot* slots, std::size_t whole) {
  std::uint64_t events = 0;
  for (std::size_t at = 0; at < whole; at += 1 + format::extension_slots(slots[at])) ++events;
  return events;
}

// False, and errno says why, if the disk did not take it.
bool write_chunk(const ChunkHeader& chunk) {
  const auto* slots = reinterpret_cast<const Slot*>(&chunk + 1);
  const std::size_t whole = format::whole_slots(slots, format::slots_per_chunk);
  if (whole == 0) return true;
  const std::span<const std::byte> block = encoder->encode(chunk, slots, whole);
  errno = ENOMEM;
  return !block.empty() && append_block(session.file, block);
}

// Recording goes on in the memory that there is; what does not fit on the disk is counted and said once.
void lose_chunk(const ChunkHeader& chunk, int error) {
  const auto* slots = reinterpret_cast<const Slot*>(&chunk + 1);
  count_dropped(format::DropCause::disk, count_events(slots, format::whole_slots(slots, format::slots_per_chunk)));
  if (!disk_complained) say("%s: events are lost: %s", session.file.path, strerror(error));
  disk_complained = true;
}

void set_free(std::uint32_t number) {
  ChunkHeader* chunk = session.file.chunk(number);
  std::atomic_ref<std::uint32_t>(chunk->state)
      .store(static_cast<std::uint32_t>(ChunkState::free), std::memory_order_release);
  memset(static_cast<void*>(chunk + 1), 0, format::chunk_bytes - sizeof(ChunkHeader));
  session.free.insert(number);
}

void drain_full_chunks() {
  for (;;) {
    const std::uint32_t number = session.full.take(session.file.chunks);
    if (number == ChunkSet::none) return;
    const ChunkHeader* chunk = session.file.chunk(number);
    if (!write_chunk(*chunk)) lose_chunk(*chunk, errno);
    set_free(number);
  }
}

void sleep_until(const timespec& deadline) {
  sleeping.store(true, std::memory_order_seq_cst);
  drain_full_chunks();  // those that came before `sleeping` was seen
  while (sem_clockwait(&wakeups, CLOCK_MONOTONIC, &deadline) != 0 && errno == EINTR) {
  }
  sleeping.store(false, std::memory_order_seq_cst);
}

void* run(void*) {
  pthread_setname_np(pthread_self(), "paceline");
  while (!finishing.load(std::memory_order_relaxed) && populate_chunk()) {
  }
  timespec next_pair{};
  clock_gettime(CLOCK_MONOTONIC, &next_pair);
  ++next_pair.tv_sec;
  int pairs = 0;
  while (!finishing.load(std::memory_order_acquire)) {
    sleep_until(next_pair);
    drain_full_chunks();
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > next_pair.tv_sec || (now.tv_sec == next_pair.tv_sec && now.tv_nsec >= next_pair.tv_nsec)) {
      record_clock_pair();
      if (++pairs % 30 == 0) exchange_clocks(ExchangePhase::between);
      next_pair = now;
      ++next_pair.tv_sec;
    }
  }
  return nullptr;
}

sigset_t block_signals() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

}  // namespace

void start_drain() {
  sem_init(&wakeups, 0, 0);
  encoder = new (encoder_place) format::BlockEncoder;
  const sigset_t before = block_signals();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  const int error = pthread_create(&thread, &attributes, run, nullptr);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  has_thread = error == 0;
  if (!has_thread) say("%s: no thread to write events out: %s", session.file.path, strerror(error));
}

void wake_drain() {
  // One wake-up is enough for any number of full chunks.
  if (sleeping.exchange(false, std::memory_order_seq_cst)) sem_post(&wakeups);
}

void finish_drain() {
  finishing.store(true, std::memory_order_release);
  sem_post(&wakeups);
  if (has_thread) pthread_join(thread, nullptr);
  // Other threads may be inside an event that they began before recording ended.
  usleep(1000);
  gate.accepting.store(0, std::memory_order_release);
  const sigset_t before = block_signals();  // a file at its size limit would raise SIGXFSZ
  // What the disk does not take any more stays in the live area, where readers find it.
  bool all_written = true;
  for (std::uint32_t number = 0; number < session.file.chunks; ++number) {
    ChunkHeader* chunk = session.file.chunk(number);
    std::atomic_ref<std::uint32_t> state(chunk->state);
    if (state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ChunkState::free)) continue;
    if (write_chunk(*chunk)) {
      state.store(static_cast<std::uint32_t>(ChunkState::free), std::memory_order_release);
    } else {
      all_written = false;
    }
  }
  if (all_written) {
    compact_output(session.file);
  } else {
    std::atomic_ref<std::uint32_t>(session.file.header->closed).store(1, std::memory_order_release);
  }
  const timespec no_wait{};
  sigset_t file_limit;
  sigemptyset(&file_limit);
  sigaddset(&file_limit, SIGXFSZ);
  sigtimedwait(&file_limit, nullptr, &no_wait);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace paceline::inject
