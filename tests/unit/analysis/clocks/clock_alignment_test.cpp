// SPDX-License-Identifier: Apache-2.0
// Ticks become nanoseconds of one clock, within the error bound that is stated.
#include "analysis/clocks/alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace paceline::analysis {
namespace {

// A host's clock against true time: ticks = origin + rate × seconds of true time; UTC is off by utc_error_ns.
struct Host {
  std::string name;
  double ticks_per_second = 2.5e9;
  double drift = 0;  // relative
  std::uint64_t origin = 0;
  double utc_error_ns = 0;

  std::uint64_t ticks(double true_ns) const {
    return origin + static_cast<std::uint64_t>(std::llround(true_ns * 1e-9 * ticks_per_second * (1 + drift)));
  }
  // CLOCK_MONOTONIC_RAW counts the host's own quartz: nominal seconds of its ticks.
  std::int64_t monotonic(double true_ns) const { return std::llround(true_ns * (1 + drift)) + 777; }
  std::int64_t utc(double true_ns) const { return 1'700'000'000'000'000'000 + std::llround(true_ns + utc_error_ns); }
};

ClockReadings readings(int rank, const Host& host, double start_ns, double end_ns) {
  ClockReadings result;
  result.rank = rank;
  result.domain = host.name;
  result.ticks_per_second = host.ticks_per_second * (1 + 3e-6);  // as a short calibration finds it
  result.start_ticks = host.ticks(start_ns);
  result.end_ticks = host.ticks(end_ns);
  result.start_utc_ns = host.utc(start_ns);
  for (int i = 0; i <= 10; ++i) {
    const double t = start_ns + (end_ns - start_ns) * i / 10;
    result.pairs.push_back({host.ticks(t), 50, host.utc(t), host.monotonic(t)});
  }
  return result;
}

// A round trip that took `there_ns` to the peer and `back_ns` from it.
void exchange(ClockReadings& own, const Host& host, const Host& peer, int peer_rank, int phase, double at_ns,
              double there_ns, double back_ns) {
  own.exchanges.push_back(
      {peer_rank, phase, host.ticks(at_ns), host.ticks(at_ns + there_ns + back_ns), peer.ticks(at_ns + there_ns)});
}

double time_of(const AlignedClock& clock, const ClockReadings& process, std::uint64_t ticks) {
  return clock.time(static_cast<double>(static_cast<std::int64_t>(ticks - process.start_ticks)));
}

double ns_per_tick(const AlignedClock& clock) { return (clock.time(1e12) - clock.time(0)) / 1e12; }

TEST(ClockAlignment, ProcessesOfOneHostShareTheirTicks) {
  const Host host{"a", 2.5e9, 0, 123'456'789'000};
  std::vector<ClockReadings> processes = {readings(0, host, 0, 10e9), readings(1, host, 3e6, 10e9)};
  const auto clocks = align_clocks(processes);
  EXPECT_EQ(clocks[0].error_ns, same_clock_error_ns);
  EXPECT_EQ(clocks[1].error_ns, same_clock_error_ns);
  for (const double t : {1e9, 5e9, 9.9e9}) {
    EXPECT_NEAR(time_of(clocks[0], processes[0], host.ticks(t)), t, 5);
    EXPECT_NEAR(time_of(clocks[1], processes[1], host.ticks(t)), time_of(clocks[0], processes[0], host.ticks(t)), 1e-3);
  }
}

TEST(ClockAlignment, TheFrequencyIsThatOfTheClockPairsNotTheNominalOne) {
  const Host host{"a", 3e9, 0, 999};
  std::vector<ClockReadings> processes = {readings(0, host, 0, 100e9)};
  EXPECT_NEAR(ns_per_tick(align_clocks(processes)[0]) * 3e9, 1e9, 0.1);  // 1e-10; the nominal one is 3e-6 off
}

TEST(ClockAlignment, APreemptedReadingDoesNotBendTheLine) {
  const Host host{"a", 3e9, 0, 999};
  std::vector<ClockReadings> processes = {readings(0, host, 0, 10e9)};
  ClockPairReading late = processes[0].pairs.back();
  late.monotonic_ns += 2'000'000;  // 2 ms between the two reads, and the bracket shows it
  late.width = 6'100'000;
  processes[0].pairs.push_back(late);
  EXPECT_NEAR(ns_per_tick(align_clocks(processes)[0]) * 3e9, 1e9, 1);
}

TEST(ClockAlignment, AMonotonicCounterNeedsNoFit) {
  ClockReadings process;
  process.ticks_are_ns = true;
  process.ticks_per_second = 1e9;
  process.start_ticks = 5000;
  EXPECT_EQ(ns_per_tick(align_clocks({&process, 1})[0]), 1);
}

TEST(ClockAlignment, ExchangesAtStartAndEndRemoveOffsetAndDriftWithinTheBound) {
  const Host a{"a", 2.5e9, 0, 1'000'000'000'000}, b{"b", 3.1e9, 40e-6, 77'000'000, 250e6};
  std::vector<ClockReadings> processes = {readings(0, a, 0, 100e9), readings(1, b, 1e9, 100e9)};
  for (int i = 0; i < 5; ++i) exchange(processes[1], b, a, 0, 0, 2e9 + i * 1e6, 9000 + 1000 * i, 3000 + 500 * i);
  for (int i = 0; i < 5; ++i) exchange(processes[1], b, a, 0, 1, 99e9 + i * 1e6, 4000 + 1000 * i, 8000 + 500 * i);
  const auto clocks = align_clocks(processes);
  EXPECT_EQ(clocks[0].error_ns, same_clock_error_ns);
  EXPECT_FALSE(clocks[1].by_utc);
  // Half of the shortest round trip, 12 µs; the drift may wander in the 97 s between; and both machines' cores.
  EXPECT_GT(clocks[1].error_ns, 5900 + 0.5 * 97e9 * wander_bound + 2 * same_clock_error_ns);
  EXPECT_LT(clocks[1].error_ns, 6300 + 0.5 * 97e9 * wander_bound + 2 * same_clock_error_ns);
  for (const double t : {1e9, 2e9, 50e9, 99e9, 100e9}) {
    const double difference =
        time_of(clocks[1], processes[1], b.ticks(t)) - time_of(clocks[0], processes[0], a.ticks(t));
    EXPECT_LE(std::abs(difference), clocks[1].error_ns) << "at " << t;
  }
}

TEST(ClockAlignment, RandomTripsNeverBreakTheStatedBound) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto uniform = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const Host a{"a", 2.5e9, uniform(-50e-6, 50e-6), 4'000'000}, b{"b", 3.1e9, uniform(-50e-6, 50e-6), 77'000'000};
    const double end = uniform(0.5e9, 60e9);
    std::vector<ClockReadings> processes = {readings(0, a, 0, end), readings(1, b, 0.1e9, end)};
    for (int i = 0; i < 8; ++i) exchange(processes[1], b, a, 0, 0, 0.2e9, uniform(1e3, 60e3), uniform(1e3, 60e3));
    if (round % 2 == 0) {  // every second run was killed before MPI_Finalize
      for (int i = 0; i < 8; ++i)
        exchange(processes[1], b, a, 0, 1, end - 0.1e9, uniform(1e3, 60e3), uniform(1e3, 60e3));
    }
    const auto clocks = align_clocks(processes);
    for (const double t : {0.1e9, 0.2e9, 0.5 * end, end}) {
      const double difference =
          time_of(clocks[1], processes[1], b.ticks(t)) - time_of(clocks[0], processes[0], a.ticks(t));
      ASSERT_LE(std::abs(difference), clocks[1].error_ns + 1) << "round " << round << " at " << t;
    }
  }
}

// The drift is 40 ppm in the first half of the run and 45 in the second: two pieces follow it, one line cannot.
TEST(ClockAlignment, EachPieceHasItsOwnDrift) {
  const Host a{"a", 1e9, 0, 5'000};
  const auto ahead = [](double t) { return 40e-6 * std::min(t, 50e9) + 45e-6 * std::max(t - 50e9, 0.0); };
  const auto ticks = [&](double t) { return static_cast<std::uint64_t>(std::llround(7e9 + t + ahead(t))); };
  std::vector<ClockReadings> processes = {readings(0, a, 0, 100e9), readings(1, Host{"b", 1e9}, 0, 100e9)};
  ClockReadings& b = processes[1];
  b.ticks_are_ns = true;
  b.start_ticks = ticks(0);
  b.end_ticks = ticks(100e9);
  for (const auto& [phase, at] : {std::pair(0, 0.01e9), std::pair(2, 50e9), std::pair(1, 99.9e9)}) {
    b.exchanges.push_back({0, phase, ticks(at), ticks(at + 4000), a.ticks(at + 2000)});
  }
  const auto clocks = align_clocks(processes);
  for (const double t : {0.0, 1e9, 25e9, 50e9, 75e9, 100e9}) {
    EXPECT_NEAR(time_of(clocks[1], b, ticks(t)), time_of(clocks[0], processes[0], a.ticks(t)), 100) << "at " << t;
  }
  EXPECT_LT(clocks[1].error_ns, 2000 + 0.5 * 50e9 * wander_bound + 2 * same_clock_error_ns + 20);
}

// Trips that are slow one way only leave one end of the range each: together they tell more than the shortest.
TEST(ClockAlignment, TripsOfOneRoundNarrowEachOther) {
  const Host a{"a", 1e9, 0, 5'000}, b{"b", 1e9, 0, 900'000'000};
  std::vector<ClockReadings> processes = {readings(0, a, 0, 1e9), readings(1, b, 0, 1e9)};
  exchange(processes[1], b, a, 0, 0, 1e6, 2000, 9000);
  exchange(processes[1], b, a, 0, 0, 1.1e6, 12000, 2000);
  exchange(processes[1], b, a, 0, 1, 999e6, 2000, 2000);
  const auto clocks = align_clocks(processes);
  EXPECT_NEAR(time_of(clocks[1], processes[1], b.ticks(1e6)), time_of(clocks[0], processes[0], a.ticks(1e6)), 10);
  EXPECT_LT(clocks[1].error_ns, 2100 + 0.5e9 * wander_bound + 2 * same_clock_error_ns);
}

// A round whose answers were late, right before a good one: no line goes through both, and the good one is kept.
TEST(ClockAlignment, ARoundThatContradictsABetterOneIsLeftOut) {
  const Host a{"a", 1e9, 0, 5'000}, b{"b", 1e9, 0, 900'000'000};
  for (const bool good_first : {false, true}) {
    std::vector<ClockReadings> processes = {readings(0, a, 0, 2e9), readings(1, b, 0, 2e9)};
    exchange(processes[1], b, a, 0, 0, good_first ? 1e9 : 1.06e9, 2000, 2000);
    exchange(processes[1], b, a, 0, 2, good_first ? 1.06e9 : 1e9, 300'000, 2000);
    const auto clocks = align_clocks(processes);
    for (const double t : {0.0, 1e9, 1.05e9, 2e9}) {
      EXPECT_NEAR(time_of(clocks[1], processes[1], b.ticks(t)), time_of(clocks[0], processes[0], a.ticks(t)), 10);
    }
    EXPECT_NEAR(clocks[1].error_ns, 2000 + drift_bound * 1.06e9 + 2 * same_clock_error_ns, 0.07e9 * drift_bound);
  }
}

// In the middle only slow answers came: the line between the rounds around knows more.
TEST(ClockAlignment, ARoundThatKnowsLessThanItsNeighboursIsLeftOut) {
  const Host a{"a", 1e9, 0, 5'000}, b{"b", 1e9, 10e-6, 900'000'000};
  std::vector<ClockReadings> processes = {readings(0, a, 0, 3e9), readings(1, b, 0, 3e9)};
  exchange(processes[1], b, a, 0, 0, 0.1e9, 2000, 2000);
  exchange(processes[1], b, a, 0, 2, 1e9, 100'000, 50'000);
  exchange(processes[1], b, a, 0, 2, 2e9, 80'000, 90'000);
  exchange(processes[1], b, a, 0, 1, 2.9e9, 2000, 2000);
  const auto clocks = align_clocks(processes);
  for (const double t : {0.1e9, 1e9, 2e9, 2.9e9}) {
    EXPECT_NEAR(time_of(clocks[1], processes[1], b.ticks(t)), time_of(clocks[0], processes[0], a.ticks(t)), 10);
  }
  EXPECT_LT(clocks[1].error_ns, 2600 + 2 * same_clock_error_ns);
}

TEST(ClockAlignment, HostsWithoutAnExchangeAreAlignedByUtcAndSayHowWell) {
  // b runs 30 ppm fast, and UTC is set by 400 ms there; its own quartz does not count.
  const Host a{"a", 2.5e9, 0, 500}, b{"b", 3.1e9, 30e-6, 77'000'000, 0.4e6};
  std::vector<ClockReadings> processes = {readings(0, a, 0, 10e9), readings(1, b, 1e9, 10e9)};
  processes[0].utc_error_us = 300;
  processes[1].utc_error_us = 700;
  auto clocks = align_clocks(processes);
  EXPECT_FALSE(clocks[0].by_utc);
  EXPECT_TRUE(clocks[1].by_utc);
  EXPECT_EQ(clocks[1].error_ns, 1e6);
  for (const double t : {1e9, 5e9, 10e9}) {
    EXPECT_NEAR(time_of(clocks[1], processes[1], b.ticks(t)) - time_of(clocks[0], processes[0], a.ticks(t)), 0.4e6, 10);
  }
  processes[1].utc_error_us = -1;
  clocks = align_clocks(processes);
  EXPECT_GE(clocks[1].error_ns, unset_utc_error_ns);
}

TEST(ClockAlignment, AThirdHostIsReachedThroughASecond) {
  const Host a{"a", 2.5e9, 0, 500}, b{"b", 3.1e9, 0, 77'000'000}, c{"c", 2e9, 0, 8'000'000'000};
  std::vector<ClockReadings> processes = {readings(0, a, 0, 10e9), readings(1, b, 0, 10e9), readings(2, c, 0, 10e9)};
  for (const auto& [phase, at] : {std::pair(0, 0.1e9), std::pair(1, 9.9e9)}) {
    exchange(processes[1], b, a, 0, phase, at, 1000, 1000);
    exchange(processes[1], b, c, 2, phase, at + 1e6, 2000, 2000);  // so b knows c; the link is used the other way round
  }
  const auto clocks = align_clocks(processes);
  EXPECT_FALSE(clocks[2].by_utc);
  EXPECT_NEAR(clocks[2].error_ns, 3000 + 2 * 0.5 * 9.8e9 * wander_bound + 3 * same_clock_error_ns, 200);
  EXPECT_NEAR(time_of(clocks[2], processes[2], c.ticks(5e9)), time_of(clocks[0], processes[0], a.ticks(5e9)), 10);
}

TEST(PiecewiseLine, TurnsRoundAndComposes) {
  const PiecewiseLine f({{0, 10}, {10, 30}, {20, 40}}, 1, 3), g({{5, 0}, {8, 12}}, 2, 4);
  const PiecewiseLine back = f.inverse(), both = after(f, g);
  for (double x = -30; x < 60; x += 0.7) {
    EXPECT_NEAR(back(f(x)), x, 1e-9) << x;
    EXPECT_NEAR(both(x), f(g(x)), 1e-9) << x;
  }
  EXPECT_EQ(f(5), 20);
  EXPECT_EQ(f(-1), 9);
  EXPECT_EQ(f(21), 43);
}

TEST(ClockAlignment, TheProcessStartIsTakenOverFromUtcAndNeverAfterTheFirstEvent) {
  const Host host{"a", 2.5e9, 0, 500};
  std::vector<ClockReadings> processes = {readings(0, host, 1e9, 10e9), readings(1, host, 1e9, 10e9)};
  processes[0].process_start_utc_ns = host.utc(0.7e9);
  processes[1].process_start_utc_ns = host.utc(1.005e9);  // the system counts starts in steps of 10 ms
  const auto clocks = align_clocks(processes);
  EXPECT_NEAR(clocks[0].time(0) - clocks[0].process_start_ns, 0.3e9, 10);
  EXPECT_EQ(clocks[1].process_start_ns, clocks[1].time(0));
}

}  // namespace
}  // namespace paceline::analysis
