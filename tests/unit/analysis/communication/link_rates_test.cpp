// SPDX-License-Identifier: Apache-2.0
// The rated speed of a link comes from the facts of the machine, or from the user.
#include "analysis/communication/link_rates.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::analysis {
namespace {

using Facts = std::map<std::string, std::string>;

TEST(LinkRates, TheSlowestHostsFastestAdapterLimits) {
  const Facts fast = {{"nic.eth0", "1000 Mbit/s, NUMA node 0"},
                      {"hca.mlx5_0/1", "InfiniBand 200 Gb/sec (4X HDR), ACTIVE, NUMA node 1"},
                      {"hca.mlx5_1/1", "InfiniBand 400 Gb/sec (4X NDR), DOWN"}};
  const Facts slow = {{"nic.eth0", "speed not known"}, {"nic.eth1", "10000 Mbit/s"}};
  const std::vector<LinkEnd> ends = {{"a", "a", &fast}, {"a", "a", &fast}, {"b", "b", &slow}};
  const auto rate = rated_link(ends, false, {});
  ASSERT_TRUE(rate);
  EXPECT_DOUBLE_EQ(rate->bytes_per_s, 1.25e9);
  EXPECT_EQ(rate->source, "eth1 of b");
  const std::vector<LinkEnd> equal = {{"a", "a", &fast}, {"b", "b", &fast}};
  EXPECT_DOUBLE_EQ(rated_link(equal, false, {})->bytes_per_s, 25e9);
}

TEST(LinkRates, AnUnknownAdapterAndSharedMemoryHaveNone) {
  const Facts known = {{"nic.eth0", "10000 Mbit/s"}}, unknown = {{"nic.eth0", "speed not known"}};
  EXPECT_FALSE(rated_link(std::vector<LinkEnd>{{"a", "a", &known}, {"b", "b", &unknown}}, false, {}));
  EXPECT_FALSE(rated_link(std::vector<LinkEnd>{{"a", "a", &known}, {"b", "b", nullptr}}, false, {}));
  EXPECT_FALSE(rated_link(std::vector<LinkEnd>{{"a", "a", &known}, {"a", "a", &known}}, false, {}));
  EXPECT_FALSE(rated_link(std::vector<LinkEnd>{{"a", "a", &known}}, false, 10));
}

TEST(LinkRates, TheUserTakesPrecedence) {
  const Facts known = {{"nic.eth0", "10000 Mbit/s"}};
  const std::vector<LinkEnd> ends = {{"a", "a", &known}, {"b", "b", &known}};
  EXPECT_DOUBLE_EQ(rated_link(ends, false, 1)->bytes_per_s, 1.25e8);
  EXPECT_EQ(rated_link(ends, false, 1)->source, "as given");
}

TEST(LinkRates, GpusOfOneHostAreJoinedByNvlink) {
  const Facts h200 = {{"gpu.0", "NVIDIA H200, 150754820096 bytes, PCI 0000:18:00.0"},
                      {"gpu_link.0-1", "18 NVLinks to NVSwitch, PCIe: one NUMA node"}};
  const Facts pcie = {{"gpu.0", "NVIDIA H200, 150754820096 bytes, PCI 0000:18:00.0"},
                      {"gpu_link.0-1", "4 NVLinks, PCIe: one NUMA node"},
                      {"gpu_link.0-2", "PCIe: one NUMA node"}};
  const auto rate = rated_link(std::vector<LinkEnd>{{"a", "a", &h200}, {"a", "a", &h200}}, true, {});
  ASSERT_TRUE(rate);
  EXPECT_DOUBLE_EQ(rate->bytes_per_s, 450e9);
  EXPECT_EQ(rate->source, "18 NVLinks to NVSwitch");
  EXPECT_FALSE(rated_link(std::vector<LinkEnd>{{"a", "a", &pcie}, {"a", "a", &pcie}}, true, {}));
  EXPECT_FALSE(rated_link(std::vector<LinkEnd>{{"a", "a", &h200}, {"a", "a", &h200}}, false, {}));
}

}  // namespace
}  // namespace paceline::analysis
