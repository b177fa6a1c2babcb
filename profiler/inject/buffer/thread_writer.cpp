// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/thread_writer.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>

#include "profiler/inject/buffer/hot.h"

namespace paceline::inject {

thread_local constinit ThreadWriter writer;
PACELINE_HOT std::uint64_t start_ticks = 0;

namespace {

pthread_key_t thread_end_key;
std::atomic<std::uint32_t> next_track{0};
std::atomic<std::uint64_t> next_sequence{1};

}  // namespace

// The key is the last of those whose values need no memory of their own, because the GNU C library keeps one value of a
// key for all namespaces of dlmopen: the first keys may be others' there.
void start_threads(void (*thread_ended)(void*)) {
  constexpr pthread_key_t last_without_memory = 31;
  pthread_key_t keys[last_without_memory + 1];
  std::size_t made = 0;
  while (made < std::size(keys) && pthread_key_create(&keys[made], thread_ended) == 0) {
    thread_end_key = keys[made++];
    if (thread_end_key >= last_without_memory) break;
  }
  while (made > 1) pthread_key_delete(keys[--made - 1]);
}

std::uint64_t take_chunk_sequence() { return next_sequence.fetch_add(1, std::memory_order_relaxed); }
std::uint64_t next_chunk_sequence() { return next_sequence.load(std::memory_order_acquire); }

void register_thread() {
  if (!writer.registered) {
    writer.registered = true;
    writer.track = next_track.fetch_add(1, std::memory_order_relaxed);
    writer.thread_id = static_cast<std::uint64_t>(syscall(SYS_gettid));
  }
  pthread_setspecific(thread_end_key, &writer);
}

void reset_threads_in_child() {
  next_track = 0;
  next_sequence = 1;
}

}  // namespace paceline::inject
