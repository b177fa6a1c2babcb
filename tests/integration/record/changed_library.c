// SPDX-License-Identifier: Apache-2.0
// A library whose function COMPUTE is sampled. Compiled twice, with two names of the same length, so that both
// libraries have the same layout.
#include <time.h>

static volatile double value = 1;

__attribute__((noinline)) void COMPUTE(void) {
  const time_t end = time(NULL) + 3;
  while (time(NULL) < end) {
    for (int i = 0; i < 20000; ++i) value = value * 1.0001 + 0.1;
  }
}

void run_for_seconds(void) {
  COMPUTE();
  __asm__ volatile("");
}
