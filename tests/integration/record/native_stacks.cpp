// SPDX-License-Identifier: Apache-2.0
// Functions whose stacks are sampled while they compute, wait, or were interrupted by a signal handler. Compiled
// without frame pointers, and also stripped. Then two libraries, the arguments, that come to the same address one after
// the other.
#include <alloca.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace places {
namespace {

#define KEPT [[gnu::noinline, gnu::used]]

volatile double value = 1;

bool passed(double seconds) {
  static timespec from{};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (seconds == 0) from = now;
  return static_cast<double>(now.tv_sec - from.tv_sec) + static_cast<double>(now.tv_nsec - from.tv_nsec) * 1e-9 >
         seconds;
}

}  // namespace

constexpr double seconds = 0.4;

KEPT void compute() {
  for (passed(0); !passed(seconds);) {
    for (int i = 0; i < 20000; ++i) value = value * 1.0001 + 0.1;
  }
  asm volatile("");
}

// Its frame is found by rbp.
KEPT void with_alloca(std::size_t size) {
  auto* room = static_cast<char*>(alloca(size));
  memset(room, 1, size);
  compute();
  asm volatile("" ::"r"(room) : "memory");
}

// It aligns its stack: the frame is found by an expression.
KEPT void with_aligned_stack() {
  alignas(64) volatile char room[256];
  room[0] = 1;
  compute();
  asm volatile("" ::"r"(&room[0]) : "memory");
}

KEPT void deep(int levels) {
  if (levels > 0) {
    deep(levels - 1);
  } else {
    compute();
  }
  asm volatile("");
}

KEPT void wait_for_time() {
  timespec time{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&time, nullptr);
  asm volatile("");
}

KEPT void wait_for_lock() {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  ++until.tv_sec;
  pthread_mutex_lock(&lock);
  pthread_mutex_timedlock(&lock, &until);
  asm volatile("");
}

KEPT void handler(int) {
  compute();
  asm volatile("");
}

KEPT void interrupted() {
  raise(SIGUSR1);
  asm volatile("");
}

extern "C" void* thread_function(void*) {
  compute();
  return nullptr;
}

}  // namespace places

int main(int count, char** libraries) {
  using namespace places;
  signal(SIGUSR1, handler);
  nvtxRangePushA("all");
  compute();
  with_alloca(1000 + static_cast<std::size_t>(getpid()) % 7);
  with_aligned_stack();
  volatile int levels = 300;
  deep(levels);
  wait_for_time();
  wait_for_lock();
  interrupted();
  pthread_t thread;
  pthread_create(&thread, nullptr, thread_function, nullptr);
  pthread_join(thread, nullptr);
  for (int i = 1; i < count; ++i) {
    void* library = dlopen(libraries[i], RTLD_NOW);
    const auto run = library == nullptr ? nullptr : reinterpret_cast<void (*)()>(dlsym(library, "run_for_seconds"));
    if (run == nullptr) return 1;
    run();
    dlclose(library);
  }
  nvtxRangePop();
  return 0;
}
