// Ticks become nanoseconds of one clock, within the error bound that is stated.
#include "analysis/importers/clock_alignment.h"

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
  return clock.start_ns +
         clock.ns_per_tick * static_cast<double>(static_cast<std::int64_t>(ticks - process.start_ticks));
}

TEST(ClockAlignment, ProcessesOfOneHostShareTheirTicksWithoutError) {
  const Host host{"a", 2.5e9, 0, 123'456'789'000};
  std::vector<ClockReadings> processes = {readings(0, host, 0, 10e9), readings(1, host, 3e6, 10e9)};
  const auto clocks = align_clocks(processes);
  EXPECT_EQ(clocks[0].error_ns, 0);
  EXPECT_EQ(clocks[1].error_ns, 0);
  for (const double t : {1e9, 5e9, 9.9e9}) {
    EXPECT_NEAR(time_of(clocks[0], processes[0], host.ticks(t)), t, 5);
    EXPECT_NEAR(time_of(clocks[1], processes[1], host.ticks(t)), time_of(clocks[0], processes[0], host.ticks(t)), 1e-3);
  }
}

TEST(ClockAlignment, TheFrequencyIsThatOfTheClockPairsNotTheNominalOne) {
  const Host host{"a", 3e9, 0, 999};
  std::vector<ClockReadings> processes = {readings(0, host, 0, 100e9)};
  EXPECT_NEAR(align_clocks(processes)[0].ns_per_tick * 3e9, 1e9, 0.1);  // 1e-10; the nominal one is 3e-6 off
}

TEST(ClockAlignment, APreemptedReadingDoesNotBendTheLine) {
  const Host host{"a", 3e9, 0, 999};
  std::vector<ClockReadings> processes = {readings(0, host, 0, 10e9)};
  ClockPairReading late = processes[0].pairs.back();
  late.monotonic_ns += 2'000'000;  // 2 ms between the two reads, and the bracket shows it
  late.width = 6'100'000;
  processes[0].pairs.push_back(late);
  EXPECT_NEAR(align_clocks(processes)[0].ns_per_tick * 3e9, 1e9, 1);
}

TEST(ClockAlignment, AMonotonicCounterNeedsNoFit) {
  ClockReadings process;
  process.ticks_are_ns = true;
  process.ticks_per_second = 1e9;
  process.start_ticks = 5000;
  EXPECT_EQ(align_clocks({&process, 1})[0].ns_per_tick, 1);
}

TEST(ClockAlignment, ExchangesAtStartAndEndRemoveOffsetAndDriftWithinTheBound) {
  const Host a{"a", 2.5e9, 0, 1'000'000'000'000}, b{"b", 3.1e9, 40e-6, 77'000'000, 250e6};
  std::vector<ClockReadings> processes = {readings(0, a, 0, 100e9), readings(1, b, 1e9, 100e9)};
  for (int i = 0; i < 5; ++i) exchange(processes[1], b, a, 0, 0, 2e9 + i * 1e6, 9000 + 1000 * i, 3000 + 500 * i);
  for (int i = 0; i < 5; ++i) exchange(processes[1], b, a, 0, 1, 99e9 + i * 1e6, 4000 + 1000 * i, 8000 + 500 * i);
  const auto clocks = align_clocks(processes);
  EXPECT_EQ(clocks[0].error_ns, 0);
  EXPECT_FALSE(clocks[1].by_utc);
  EXPECT_GT(clocks[1].error_ns, 5900);  // half of the shortest round trip, 12 µs
  EXPECT_LT(clocks[1].error_ns, 6300);  // and a little for the second before the first exchange
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

TEST(ClockAlignment, HostsWithoutAnExchangeAreAlignedByUtcAndSaySo) {
  const Host a{"a", 2.5e9, 0, 500}, b{"b", 3.1e9, 0, 77'000'000, 0.4e6};
  std::vector<ClockReadings> processes = {readings(0, a, 0, 10e9), readings(1, b, 1e9, 10e9)};
  const auto clocks = align_clocks(processes);
  EXPECT_FALSE(clocks[0].by_utc);
  EXPECT_TRUE(clocks[1].by_utc);
  EXPECT_EQ(clocks[1].error_ns, utc_error_ns);
  EXPECT_NEAR(time_of(clocks[1], processes[1], b.ticks(5e9)) - time_of(clocks[0], processes[0], a.ticks(5e9)), 0.4e6,
              10);
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
  EXPECT_NEAR(clocks[2].error_ns, 3000, 200);
  EXPECT_NEAR(time_of(clocks[2], processes[2], c.ticks(5e9)), time_of(clocks[0], processes[0], a.ticks(5e9)), 10);
}

TEST(ClockAlignment, TheProcessStartIsTakenOverFromUtcAndNeverAfterTheFirstEvent) {
  const Host host{"a", 2.5e9, 0, 500};
  std::vector<ClockReadings> processes = {readings(0, host, 1e9, 10e9), readings(1, host, 1e9, 10e9)};
  processes[0].process_start_utc_ns = host.utc(0.7e9);
  processes[1].process_start_utc_ns = host.utc(1.005e9);  // the system counts starts in steps of 10 ms
  const auto clocks = align_clocks(processes);
  EXPECT_NEAR(clocks[0].start_ns - clocks[0].process_start_ns, 0.3e9, 10);
  EXPECT_EQ(clocks[1].process_start_ns, clocks[1].start_ns);
}

}  // namespace
}  // namespace paceline::analysis
