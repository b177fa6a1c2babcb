// Puts the clocks of a run's processes on one time line.
//
// Processes that read one counter (same boot, host and source: a clock domain) need no alignment: their raw ticks mean
// the same, and one frequency, fitted by least squares through all their clock pairs (ticks, CLOCK_MONOTONIC_RAW),
// turns them into nanoseconds without any error between them.
//
// Between domains, round trips with the rank that keeps the reference clock give the offset: the peer read its clock
// between our two readings, so offset = peer − middle, wrong by at most half the round trip (Cristian, "Probabilistic
// clock synchronization", 1989). The shortest trips at MPI_Init and at MPI_Finalize give offset and drift, as in
// Score-P and Vampir. Without any, the domains are aligned by UTC, which is as good as the hosts' NTP.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

// What one process recorded about its clock.
struct ClockReadings {
  int rank = 0;
  std::string domain;                            // equal for processes that read the same counter
  bool ticks_are_ns = false;                     // the counter is CLOCK_MONOTONIC_RAW itself
  double ticks_per_second = 0;                   // nominal
  std::uint64_t start_ticks = 0, end_ticks = 0;  // absolute; first and last event
  std::int64_t start_utc_ns = 0;                 // at start_ticks
  std::int64_t process_start_utc_ns = 0;         // 0 = not known
  std::vector<ClockPairReading> pairs;
  std::vector<ClockExchangeReading> exchanges;
};

// How one process's ticks become nanoseconds of the run's clock: ns = start_ns + ns_per_tick × (ticks − start_ticks).
struct AlignedClock {
  double start_ns = 0;
  double ns_per_tick = 1;
  double process_start_ns = 0;  // never after start_ns
  double error_ns = 0;          // bound of the error against the reference domain, over the process's whole time
  bool by_utc = false;
};

inline constexpr double utc_error_ns = 1e6;    // stated where nothing but UTC aligns two hosts
inline constexpr double drift_bound = 100e-6;  // of two quartz clocks, 50 ppm each, where no drift was measured

// The domain of the lowest rank is the reference. One result for each process, in the same order.
std::vector<AlignedClock> align_clocks(std::span<const ClockReadings> processes);

}  // namespace paceline::analysis
