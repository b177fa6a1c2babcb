// SPDX-License-Identifier: Apache-2.0
// Puts the clocks of a run's processes on one time line.
//
// Processes with one boot id, host and clock source read one counter: they form a clock domain. Their raw ticks need no
// alignment. One frequency, fitted by least squares through all clock pairs (ticks, CLOCK_MONOTONIC_RAW) of the domain,
// converts them to nanoseconds and adds no error between the processes.
//
// Round trips compare the clocks of two domains. The domains form a tree, and its root has the reference clock. The
// peer reads its clock between our two readings, so offset = peer − middle, with an error of at most half the round
// trip (Cristian, "Probabilistic clock synchronization", 1989). All trips of one round together bound the offset more
// closely. The rounds (at MPI_Init, every ten seconds, at MPI_Finalize) are the knots of a line in pieces, each with
// its offset and drift. Along the tree the lines are composed and their error bounds are added. Without exchanges the
// domains are aligned by UTC, whose error is the one that their systems state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/clocks/piecewise_line.h"

namespace paceline::analysis {

struct ClockPairReading {
  std::uint64_t ticks = 0;  // absolute
  std::uint64_t width = 0;  // of the bracket, ticks
  std::int64_t utc_ns = 0, monotonic_ns = 0;
};

struct ClockExchangeReading {
  int peer = 0;                                     // rank
  int phase = 0;                                    // 0 = at MPI_Init, 1 = at MPI_Finalize, 2 = between
  std::uint64_t send_ticks = 0, receive_ticks = 0;  // absolute, own clock
  std::uint64_t peer_ticks = 0;                     // absolute, the peer's clock
};

// The cores of one machine do not read one counter at exactly the same time. `paceline record` measures the difference.
// If it cannot, the kernel's own check bounds it: at boot the kernel passes a lock from core to core and relies on the
// counter only if no core saw it go backwards (check_tsc_warp in Linux's arch/x86/kernel/tsc_sync.c). The cores
// therefore agree up to the time that a cache line takes between sockets, which is below 1 µs. Every time stamp has
// this error, also within one domain.
inline constexpr double same_clock_error_ns = 1000;

// What one process recorded about its clock.
struct ClockReadings {
  int rank = 0;
  std::string domain;                             // equal for processes that read the same counter
  bool ticks_are_ns = false;                      // the counter is CLOCK_MONOTONIC_RAW itself
  double ticks_per_second = 0;                    // nominal
  std::uint64_t start_ticks = 0, end_ticks = 0;   // absolute; first and last event
  std::int64_t start_utc_ns = 0;                  // at start_ticks
  std::int64_t process_start_utc_ns = 0;          // 0 = not known
  double counter_error_ns = same_clock_error_ns;  // between the CPUs of the machine
  std::int64_t utc_error_us = -1;                 // as the host's system states it; -1 = its clock is not synchronised
  std::vector<ClockPairReading> pairs;
  std::vector<ClockExchangeReading> exchanges;
};

// Converts the ticks of one process to nanoseconds of the run's clock.
struct AlignedClock {
  PiecewiseLine time;           // of ticks since start_ticks
  double process_start_ns = 0;  // never after time(0)
  double error_ns = 0;          // bound of the error against the reference domain, over the process's whole time
  bool by_utc = false;          // only UTC aligns it
};

inline constexpr double unset_utc_error_ns = 16e9;  // the kernel's value for a clock that is not synchronised
inline constexpr double drift_bound = 100e-6;       // of two quartz clocks, 50 ppm each, where no drift was measured
inline constexpr double wander_bound = 0.1e-6;      // of the drift around its mean between two knots

// The domain of the lowest rank is the reference. One result for each process, in the same order.
std::vector<AlignedClock> align_clocks(std::span<const ClockReadings> processes);

}  // namespace paceline::analysis
