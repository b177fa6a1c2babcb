// SPDX-License-Identifier: Apache-2.0
// A link is called slow, and collectives too small, only where the run shows it.
//
// PACELINE_SIMULATED_RUNS=1000 simulates this number of runs of each kind instead of a few.
#include "analysis/communication/collective_costs.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "analysis/phases/selection.h"
#include "tests/unit/analysis/simulated_collectives.h"

namespace paceline::analysis {
namespace collective_cost_test {
namespace {

using simulation::CollectiveJob;
using simulation::Random;
using simulation::SimulatedCollectives;

std::size_t simulated_runs(std::size_t usual) {
  const char* asked = std::getenv("PACELINE_SIMULATED_RUNS");
  return asked != nullptr ? static_cast<std::size_t>(std::strtoul(asked, nullptr, 10)) : usual;
}

std::vector<LinkUse> uses_of(const SimulatedCollectives& run) { return link_uses(run.collectives, run.ends); }
std::optional<SmallCollectives> small_of(const SimulatedCollectives& run) {
  return small_collectives(run.collectives, run.spans());
}

// Without noise: 1 MB takes 10 µs + 1 MB ÷ 1 GB/s.
TEST(LinkUses, TheMedianBusBandwidthOfLargeCollectivesIsTheUse) {
  Random random(1);
  const auto uses = uses_of(SimulatedCollectives({.bytes = {40, 1'000'000}, .noise = 0, .slowest = 1}, random));
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(uses[0].bytes, 1'000'000U);
  EXPECT_EQ(uses[0].collectives, 30U);
  EXPECT_NEAR(uses[0].bytes_per_s, 1e6 / 1010e-6, 1e4);
  EXPECT_FALSE(is_slow(uses[0], 1.9e9));
  EXPECT_TRUE(is_slow(uses[0], 2.1e9));
  EXPECT_FALSE(is_slow(uses[0], 0)) << "faster than 1 Gbit/s";
  const auto short_ones = uses_of(SimulatedCollectives({.bytes = {40, 500'000}, .noise = 0, .slowest = 1}, random));
  EXPECT_FALSE(is_slow(short_ones.at(0), 25e9)) << "half a millisecond may be a fixed cost";
}

TEST(LinkUses, OneHostAndSmallCollectivesHaveNone) {
  Random random(1);
  EXPECT_TRUE(uses_of(SimulatedCollectives({.bytes = {40, 1'000'000}, .hosts = 1}, random)).empty());
  EXPECT_TRUE(uses_of(SimulatedCollectives({.bytes = {40, 60'000}}, random)).empty());
  // 270 kB take 470 µs here, less than four small ones of 200 µs each.
  EXPECT_TRUE(uses_of(SimulatedCollectives({.bytes = {40, 40, 270'000}, .fixed_ns = 2e5}, random)).empty());
}

// Twenty calls of 1,000 bytes and one of 8 MB a step, by hand: α = 100 µs, n½ = 100 kB.
TEST(SmallCollectives, TheFixedCostAndItsShareAreThoseOfTheCalls) {
  CollectiveJob job{.bytes = std::vector<std::uint64_t>(20, 1000), .fixed_ns = 1e5, .noise = 0, .slowest = 1};
  job.bytes.push_back(8'000'000);
  Random random(1);
  const auto small = small_of(SimulatedCollectives(job, random));
  ASSERT_TRUE(small);
  EXPECT_EQ(small->operation, "MPI_Allreduce");
  EXPECT_EQ(small->calls, 20);
  EXPECT_EQ(small->median_bytes, 1000U);
  EXPECT_NEAR(static_cast<double>(small->fixed_ns), 1e5, 100);
  EXPECT_NEAR(static_cast<double>(small->half_bytes), 1e5, 100);
  // The calls take 20 × 101 µs and 8.1 ms; the step has 10 ms of work before them.
  EXPECT_NEAR(small->share_of_communication, 2000 / (2020 + 8100.0), 1e-3);
  EXPECT_NEAR(small->share_of_step, 2000 / (10000 + 2020 + 8100.0), 1e-3);
}

// Ten calls that take turns have the costs of ten calls in a row, however early they begin.
TEST(SmallCollectives, CallsInFlightTogetherCountOnce) {
  Random random(1);
  SimulatedCollectives run({.bytes = std::vector<std::uint64_t>(10, 64), .fixed_ns = 1e6, .noise = 0, .slowest = 1},
                           random);
  const auto in_a_row = small_of(run);
  for (Collective& collective : run.collectives.matched) {
    const std::int64_t end_ns = collective.last_start_ns + collective.transfer_ns;
    collective.last_start_ns = iteration_at(run.iterations, collective.calls.front().start_ns)->start_ns + 10'000'000;
    collective.transfer_ns = end_ns - collective.last_start_ns;
  }
  const auto together = small_of(run);
  ASSERT_TRUE(in_a_row && together);
  EXPECT_NEAR(in_a_row->share_of_step, 0.5, 1e-3);
  EXPECT_EQ(together->share_of_step, in_a_row->share_of_step);
  EXPECT_EQ(together->fixed_ns, in_a_row->fixed_ns);
}

// All but the last of 21 calls of 100 µs in a step wait for the ranks in a barrier for 90 µs of that.
TEST(SmallCollectives, ABarrierBeforeACallIsAPartOfIt) {
  Random random(1);
  SimulatedCollectives run({.bytes = std::vector<std::uint64_t>(21, 64), .fixed_ns = 1e5, .noise = 0, .slowest = 1},
                           random);
  run.collectives.operations.push_back("MPI_Ibarrier");
  std::vector<Collective> all;
  for (std::size_t c = 0; c < run.collectives.matched.size(); ++c) {
    Collective& call = run.collectives.matched[c];
    if (c % 21 != 20) {
      Collective& barrier = all.emplace_back(call);
      barrier.operation = 1, barrier.bytes = 0, barrier.transfer_ns = 90'000;
      call.last_start_ns += 90'000, call.transfer_ns -= 90'000;
    }
    all.push_back(call);
  }
  run.collectives.matched = all;
  const auto small = small_of(run);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->operation, "MPI_Allreduce");
  EXPECT_EQ(small->calls, 20);
  EXPECT_NEAR(static_cast<double>(small->fixed_ns), 1e5, 100);
  EXPECT_NEAR(small->share_of_step, 2000 / (10000 + 2100.0), 1e-3);
}

// The trainer's own ring, with overlap: each bucket is a range with a name of its own, after a barrier of MPI's.
TEST(SmallCollectives, RangesAreOneOperation) {
  Random random(1);
  SimulatedCollectives run({.bytes = std::vector<std::uint64_t>(10, 64), .fixed_ns = 4e5, .noise = 0, .slowest = 1},
                           random);
  run.collectives.operations = {"MPI_Ibarrier"};
  std::vector<Collective> all;
  for (std::size_t c = 0; c < run.collectives.matched.size(); ++c) {
    const std::string name = "bucket " + std::to_string(c % 10);
    if (c < 10) run.collectives.operations.push_back(name);
    Collective barrier = run.collectives.matched[c], range = barrier;
    barrier.communicator = 7, barrier.bytes = 0, barrier.transfer_ns = 300'000;
    range.operation = 1 + static_cast<std::uint32_t>(c % 10), range.of_range = true;
    range.last_start_ns += 300'000, range.transfer_ns -= 300'000;
    all.insert(all.end(), {barrier, range});
  }
  run.collectives.matched = all;
  const auto small = small_of(run);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->operation, "allreduce");
  EXPECT_TRUE(small->are_buckets());
  EXPECT_EQ(small->calls, 10);
  EXPECT_NEAR(static_cast<double>(small->fixed_ns), 4e5, 100);
  EXPECT_NEAR(small->share_of_step, 4 / 14.0, 1e-3);
}

// Four of the 14 ms of a step are fixed costs; of the communication, one millisecond is not hidden.
TEST(SmallCollectives, LoseNoMoreThanComputationLeavesExposed) {
  Random random(1);
  SimulatedCollectives run({.bytes = std::vector<std::uint64_t>(10, 64), .fixed_ns = 4e5, .noise = 0, .slowest = 1},
                           random);
  EXPECT_NEAR(small_of(run)->most_lost(), 4 / 14.0, 1e-3) << "not known";
  for (Iteration& one : run.iterations) one.phase_ns[static_cast<std::size_t>(Phase::communication)] = 1'000'000;
  EXPECT_NEAR(small_of(run)->share_of_step, 4 / 14.0, 1e-3);
  EXPECT_NEAR(small_of(run)->most_lost(), 1 / 14.0, 1e-3);
  run.collectives.operations = {"ncclAllReduce"};
  EXPECT_NEAR(small_of(run)->most_lost(), 4 / 14.0, 1e-3) << "a thread that launches them waits for none";
}

TEST(SmallCollectives, EightCallsOfOneSmallSizeNeedNoLine) {
  Random random(1);
  EXPECT_TRUE(small_of(SimulatedCollectives({.bytes = std::vector<std::uint64_t>(8, 64), .fixed_ns = 2e5}, random)));
  EXPECT_FALSE(small_of(SimulatedCollectives({.bytes = std::vector<std::uint64_t>(7, 64), .fixed_ns = 2e5}, random)));
  EXPECT_FALSE(small_of(SimulatedCollectives({.bytes = std::vector<std::uint64_t>(8, 64), .fixed_ns = 5e4}, random)));
}

// Sensible buckets on a link that reaches its rated speed. The noise is 20 %, and one of 50 transfers takes ten times
// as long.
TEST(SmallCollectives, SensibleBucketsAndHealthyLinksAreNotNamed) {
  const std::size_t runs = simulated_runs(20);
  const std::vector<std::uint64_t> layouts[] = {{40, 1'000'000, 25'000'000, 25'000'000, 20'000'000},
                                                {40, 2'800'000},
                                                {1'000'000, 25'000'000, 8'000'000},
                                                {40, 40, 40, 100'000'000},
                                                std::vector<std::uint64_t>(40, 25'000'000)};
  std::size_t named = 0, slow = 0;
  Random random(3);
  for (const auto& bytes : layouts) {
    for (std::size_t run = 0; run < runs; ++run) {
      const SimulatedCollectives simulated({.bytes = bytes, .fixed_ns = 3e4, .noise = 0.2, .slowest = 10}, random);
      named += small_of(simulated).has_value();
      for (const LinkUse& use : uses_of(simulated)) slow += is_slow(use, 1.25e9);  // it does 1 GB/s
    }
  }
  EXPECT_EQ(named, 0U);
  EXPECT_EQ(slow, 0U);
}

TEST(SmallCollectives, TinyBucketsAndAThrottledLinkAreNamed) {
  const std::size_t runs = simulated_runs(20);
  std::size_t named = 0, slow = 0;
  Random random(4);
  for (std::size_t run = 0; run < runs; ++run) {
    CollectiveJob tiny{.bytes = {}, .fixed_ns = 1e5, .noise = 0.2, .slowest = 10};
    for (std::uint64_t i = 0; i < 62; ++i) tiny.bytes.push_back(i % 3 == 0 ? 590'000 : 256U << i % 5);
    named += small_of(SimulatedCollectives(tiny, random)).has_value();
    const CollectiveJob throttled{.bytes = {40, 2'800'000}, .bytes_per_s = 5e6, .noise = 0.2, .slowest = 10};
    for (const LinkUse& use : uses_of(SimulatedCollectives(throttled, random))) slow += is_slow(use, 0);
  }
  EXPECT_EQ(named, runs);
  EXPECT_EQ(slow, runs);
}

}  // namespace
}  // namespace collective_cost_test
}  // namespace paceline::analysis
