// SPDX-License-Identifier: Apache-2.0
// The rated speed of the link that limits a collective or a message, where the facts of the machine or the user give
// it.
//
// Between hosts, the link is the fastest network adapter of each host: the recorder's facts `nic.NAME` ("10000 Mbit/s")
// and `hca.NAME/PORT` ("InfiniBand 200 Gb/sec (4X HDR), ACTIVE"). The slowest host limits. Between GPUs of one host, it
// is NVLink: its number of links by the facts `gpu_link.A-B`, and the rate of one link by the GPU's name. PCIe's
// generation is not recorded, and memory shared by the ranks of one host has no rated speed.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

namespace paceline::analysis {

// One rank that takes part.
struct LinkEnd {
  std::string machine;                                        // identifies the host; ranks with equal values share it
  std::string host;                                           // its name, for people
  const std::map<std::string, std::string>* facts = nullptr;  // as in RankSummary; may be nullptr
};

struct LinkRate {
  double bytes_per_s = 0;  // each way
  std::string source;      // for people: "eth0 of node1", "18 NVLinks to NVSwitch", "as given"
};

// Nothing where the speed is not known. `on_devices`: the data goes from GPU to GPU (NCCL). `given_gbit` is what the
// user gave in Gbit/s (`--link-gbit`, or `record --set link_gbit=10`), which takes precedence.
std::optional<LinkRate> rated_link(std::span<const LinkEnd> members, bool on_devices, std::optional<double> given_gbit);

// Whether the ranks are on more than one host.
bool on_several_hosts(std::span<const LinkEnd> members);

}  // namespace paceline::analysis
