// The clock of the recorder: the processor's time-stamp counter where the system trusts it, CLOCK_MONOTONIC_RAW else,
// or where PACELINE_CLOCK=monotonic_raw asks for it.
//
// Ticks are absolute and raw; what they mean in seconds is worked out by the reader from the clock pairs that are
// recorded beside the events.
#pragma once

#include <cstdint>

#include "profiler/format/layout.h"
#include "profiler/inject/system/system_clock.h"

namespace paceline::inject {

struct ClockState {
  format::ClockSource source = format::ClockSource::monotonic_raw;
  bool plain_tsc = false;         // ticks() is rdtsc and nothing else
  double ticks_per_second = 1e9;  // nominal
  // A pretended clock for tests (PACELINE_TEST_CLOCK): this process's clocks, UTC included, run ahead by skew_ns plus
  // drift × the time since `drift_origin`.
  double test_skew_ns = 0;
  double test_drift = 0;
  std::uint64_t drift_origin = 0;
  char test_domain[64] = "";
};

// Written once by start_clock(), before the first event.
extern ClockState clock_state;

// Chooses the source and measures its nominal frequency; takes about 2 ms. Reads PACELINE_CLOCK and
// PACELINE_TEST_CLOCK.
void start_clock();

std::uint64_t slow_ticks();

// Absolute ticks now. Costs one rdtsc where the counter is trusted.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  if (clock_state.plain_tsc) [[likely]]
    return __builtin_ia32_rdtsc();
#endif
  return slow_ticks();
}

// Nanoseconds of a system clock, under the pretended clock if there is one.
std::int64_t system_ns(clockid_t clock);

// The system's clocks and the ticks at one moment.
struct ClockPair {
  std::uint64_t ticks;  // absolute, the middle of the bracket
  std::uint64_t width;  // ticks between the reads before and after: the error is at most half of it
  std::int64_t realtime_ns;
  std::int64_t monotonic_raw_ns;
};

// The narrowest of ten brackets; about 1 µs.
ClockPair read_clock_pair();

// Records how far the clocks of this machine's CPUs are apart, where `paceline record` has measured it.
void record_clock_error();

// How far CLOCK_REALTIME may be from UTC, as the kernel knows from whoever sets it (NTP, PTP), in µs; -1 where nobody
// sets it.
std::int64_t utc_error_us();

}  // namespace paceline::inject
