// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/user_registers.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace paceline::inject {
namespace {

volatile unsigned sink;

// Returns how much was computed in this time on a CPU.
int compute_for_ms(long ms) {
  timespec now{};
  const auto now_ms = [&now] {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  };
  const long end_ms = now_ms() + ms;
  int rounds = 0;
  for (unsigned x = 1; now_ms() < end_ms; ++rounds) {
    for (unsigned i = 0; i < 10'000; ++i) x = x * 1'664'525 + i;
    sink = x;
  }
  return rounds;
}

// A thread that the kernel interrupts every 10 µs is several times as slow.
TEST(UserRegisters, AreCopiedOnceForEachQuestion) {
  UserRegisters registers;
  if (registers.open(static_cast<pid_t>(syscall(SYS_gettid))) != 0) GTEST_SKIP() << "perf_event_open is not allowed";
  NativeRegisters copy;
  const int usual = compute_for_ms(100);
  registers.ask();
  compute_for_ms(20);
  registers.ask();  // the first copy has come, and nobody took it
  compute_for_ms(20);
  ASSERT_TRUE(registers.take(copy));
  EXPECT_NE(copy.instruction, 0u);
  EXPECT_GT(copy.stack.size(), 0u);
  EXPECT_GT(compute_for_ms(100), usual / 2);
  EXPECT_FALSE(registers.take(copy));
  registers.close();
}

}  // namespace
}  // namespace paceline::inject
