// SPDX-License-Identifier: Apache-2.0
// The log that killed.c keeps of each of its two threads.
#ifndef PACELINE_TESTS_KILLED_H
#define PACELINE_TESTS_KILLED_H

#include <stdint.h>

#define KILLED_RANGES 100000

struct killed_log {
  uint64_t count;                 // ranges that ended; stored after their times
  int64_t end_ns[KILLED_RANGES];  // CLOCK_MONOTONIC
};

#endif
