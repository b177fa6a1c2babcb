// SPDX-License-Identifier: Apache-2.0
// A link that takes longer than the others is named, and no link of a balanced ring is.
//
// PACELINE_SIMULATED_RUNS=1000 simulates this number of runs of each kind instead of a few.
#include "analysis/communication/link_times.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/analysis/simulated_collectives.h"

namespace paceline::analysis {
namespace link_times_test {
namespace {

using simulation::Job;
using simulation::Random;
using simulation::SimulatedRing;

std::size_t simulated_runs(std::size_t usual) {
  const char* asked = std::getenv("PACELINE_SIMULATED_RUNS");
  return asked != nullptr ? static_cast<std::size_t>(std::strtoul(asked, nullptr, 10)) : usual;
}

std::vector<LinkTimes> times_of(const SimulatedRing& ring) {
  return link_times(ring.messages, ring.spans(), ring.ends, 0);
}

TEST(LinkTimes, TheThrottledLinkIsNamedWithItsTime) {
  Random random(1);
  const auto times = times_of(SimulatedRing({.ranks = 4, .iterations = 100, .noise = 0.001, .delay = 0.3}, random));
  ASSERT_EQ(times.size(), 1U);
  EXPECT_TRUE(times[0].between_hosts);
  ASSERT_EQ(times[0].links.size(), 4U);
  EXPECT_EQ(times[0].bytes, 1e6);
  ASSERT_EQ(times[0].test.late.size(), 1U);
  const LateRank& slow = times[0].test.late[0];
  EXPECT_EQ(times[0].links[slow.rank], (RankLink{1, 2}));
  EXPECT_NEAR(slow.behind_ns, 30e6, 1e5);
  EXPECT_NEAR(slow.share_of_step, 0.3, 0.001);
  EXPECT_NEAR(times[0].times[slow.rank], 0.05, 1e-4);
}

TEST(LinkTimes, LinksOfABalancedRingAreNamedInAtMostFivePercentOfRuns) {
  const std::size_t runs = simulated_runs(40);
  std::size_t named = 0;
  Random random(2);
  for (std::size_t run = 0; run < runs; ++run) {
    const auto times = times_of(SimulatedRing({.ranks = 4, .iterations = 100, .exponential = run % 2 == 0}, random));
    named += !times.at(0).test.late.empty();
  }
  const auto n = static_cast<double>(runs);
  EXPECT_LE(static_cast<double>(named), 0.05 * n + 3 * std::sqrt(0.05 * 0.95 * n));
}

TEST(LinkTimes, LinksOfOneHostAreNotComparedWithThoseBetweenHosts) {
  Random random(3);
  SimulatedRing ring({.ranks = 4, .iterations = 100, .noise = 0.001, .delay = 0.3}, random);
  for (std::size_t r = 0; r < 4; ++r) ring.ends[r].machine = r < 2 ? "a" : "b";
  EXPECT_TRUE(times_of(ring).empty()) << "two links of each kind are too few";
}

// 1 MB in 20 ms between each pair of hosts.
TEST(LinkTimes, LargeMessagesHaveTheUseOfTheirLink) {
  Random random(4);
  const SimulatedRing ring({.ranks = 4, .iterations = 30, .noise = 0}, random);
  const auto uses = link_uses(ring.messages, ring.ends);
  ASSERT_EQ(uses.size(), 4U);
  EXPECT_TRUE(uses[0].messages);
  EXPECT_EQ(uses[0].hosts, (std::vector<std::string>{"host0", "host1"}));
  EXPECT_EQ(uses[0].collectives, 30U);
  EXPECT_NEAR(uses[0].bytes_per_s, 50e6, 1);
  EXPECT_TRUE(is_slow(uses[0], 0));
  EXPECT_FALSE(is_slow(uses[0], 60e6));
}

}  // namespace
}  // namespace link_times_test
}  // namespace paceline::analysis
