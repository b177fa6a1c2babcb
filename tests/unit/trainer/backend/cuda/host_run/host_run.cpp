// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <ucontext.h>

#include "cuda_runtime_api.h"
#include "trainer/backend/cuda/runtime.h"

// AddressSanitizer must know which stack is in use (its header common_interface_defs.h).
#if defined(__SANITIZE_ADDRESS__)
#define HOST_RUN_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOST_RUN_ASAN
#endif
#endif
#ifdef HOST_RUN_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace host_run {
namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10, warp = 32;

struct Stack {
  ucontext_t context;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake = nullptr;  // AddressSanitizer's
};

struct Thread {
  Stack stack;
  std::unique_ptr<char[]> memory{new char[stack_bytes]};
  bool done = false;
  double offered = 0;
  unsigned shuffles = 0;
};

std::vector<std::unique_ptr<Thread>> threads;
Stack scheduler;
std::size_t current, of_block;
const std::function<void()>* body;

void switch_stacks(Stack& from, Stack& to) {
#ifdef HOST_RUN_ASAN
  __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.bytes);
#endif
  swapcontext(&from.context, &to.context);
#ifdef HOST_RUN_ASAN
  __sanitizer_finish_switch_fiber(from.fake, nullptr, nullptr);
#endif
}

void begin() {
#ifdef HOST_RUN_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.bottom, &scheduler.bytes);
#endif
  (*body)();
  threads[current]->done = true;
  barrier();
}

void run_block(std::size_t count) {
  of_block = count;
  while (threads.size() < count) threads.push_back(std::make_unique<Thread>());
  for (std::size_t i = 0; i < count; ++i) {
    Thread& thread = *threads[i];
    thread.done = false;
    thread.shuffles = 0;
    getcontext(&thread.stack.context);
    thread.stack.bottom = thread.stack.context.uc_stack.ss_sp = thread.memory.get();
    thread.stack.bytes = thread.stack.context.uc_stack.ss_size = stack_bytes;
    makecontext(&thread.stack.context, begin, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (std::size_t turn = 0; turn < count; ++turn) {
      current = downwards ? count - 1 - turn : turn;
      if (threads[current]->done) continue;
      left = true;
      threadIdx.x = static_cast<unsigned>(current) % blockDim.x;
      threadIdx.y = static_cast<unsigned>(current) / blockDim.x;
      switch_stacks(scheduler, threads[current]->stack);
    }
  }
}

}  // namespace

void barrier() { switch_stacks(threads[current]->stack, scheduler); }

double from_neighbour(double value, int distance) {
  Thread& own = *threads[current];
  const std::size_t neighbour = current / warp * warp + ((current % warp) ^ static_cast<std::size_t>(distance));
  own.offered = value;
  const unsigned number = ++own.shuffles;
  barrier();
  if (neighbour >= of_block || threads[neighbour]->done || threads[neighbour]->shuffles != number) {
    std::fprintf(stderr, "host run: thread %zu of a warp does not take part in its shuffle %u\n", neighbour % warp,
                 number);
    std::abort();
  }
  const double result = threads[neighbour]->offered;
  barrier();
  return result;
}

void run(dim3 grid, dim3 block, const std::function<void()>& thread) {
  body = &thread;
  gridDim = grid;
  blockDim = block;
  const unsigned blocks = grid.x * grid.y;
  for (unsigned turn = 0; turn < blocks; ++turn) {
    const unsigned number = downwards ? blocks - 1 - turn : turn;
    blockIdx.x = number % grid.x;
    blockIdx.y = number / grid.x;
    run_block(std::size_t{block.x} * block.y);
  }
}

}  // namespace host_run

// What the optimizers use of runtime.cpp.
namespace paceline::train::cuda {

void check(cudaError_t, const char*) {}

Buffer::Buffer(Kind kind, std::size_t bytes)
    : kind_(kind), data_(bytes > 0 ? std::aligned_alloc(256, (bytes + 255) / 256 * 256) : nullptr), bytes_(bytes) {}
Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }
Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
Buffer::~Buffer() { std::free(data_); }

Stream::Stream(const char*, bool) {}
Stream::~Stream() {}
void Stream::synchronize() const {}
Event::Event(bool) {}
Event::~Event() {}
void Event::record(cudaStream_t) {}
void Event::make_wait(cudaStream_t) const {}

}  // namespace paceline::train::cuda
