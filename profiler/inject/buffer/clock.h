// SPDX-License-Identifier: Apache-2.0
// The clock of the recorder: the CPU's time-stamp counter if the system trusts it, else CLOCK_MONOTONIC_RAW. The user
// may choose the latter with PACELINE_CLOCK=monotonic_raw.
//
// Ticks are absolute and raw. The reader converts them to seconds with the clock pairs that are recorded beside the
// events.
#pragma once

#include <cstdint>

#include "profiler/format/layout.h"
#include "profiler/inject/system/system_clock.h"

namespace paceline::inject {

struct ClockState {
  format::ClockSource source = format::ClockSource::monotonic_raw;
  bool plain_tsc = false;         // ticks() is rdtsc only
  double ticks_per_second = 1e9;  // nominal
  // A simulated clock for tests (PACELINE_TEST_CLOCK): the clocks of this process, UTC included, are ahead by skew_ns
  // plus drift × the time since `drift_origin`.
  double test_skew_ns = 0;
  double test_drift = 0;
  std::uint64_t drift_origin = 0;
  char test_domain[64] = "";
};

// Written once by start_clock(), before the first event.
extern ClockState clock_state;

// Chooses the source and measures its nominal frequency, which takes about 2 ms. Reads PACELINE_CLOCK and
// PACELINE_TEST_CLOCK.
void start_clock();

std::uint64_t slow_ticks();

// Absolute ticks now. Cost: one rdtsc if the counter is trusted.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  if (clock_state.plain_tsc) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return slow_ticks();
}

// Nanoseconds of a system clock, changed by the simulated clock if there is one.
std::int64_t system_ns(clockid_t clock);

// The system's clocks and the ticks at one moment.
struct ClockPair {
  std::uint64_t ticks;  // absolute, the middle of the bracket
  std::uint64_t width;  // ticks between the reads before and after: the error is at most half of it
  std::int64_t realtime_ns;
  std::int64_t monotonic_raw_ns;
};

// Returns the narrowest of ten brackets. Cost: about 1 µs.
ClockPair read_clock_pair();

// The largest error of CLOCK_REALTIME against UTC, in µs, as the kernel learned it from NTP or PTP; -1 if no service
// sets the clock.
std::int64_t utc_error_us();

}  // namespace paceline::inject
