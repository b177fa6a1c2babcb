// SPDX-License-Identifier: Apache-2.0
// Whether all ranks of a host come late to their collectives, as on a host with a slow processor or other load.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/communication/lateness.h"

namespace paceline::analysis {

// One column for each host. The lateness of a host in an iteration is the median lateness of its ranks (of an even
// number, the lower of the two in the middle), minus the median over the hosts; a single slow rank does not make its
// host late. The waits are those of the ranks on other hosts. `host_of_rank` has the host of each rank, counted from 0.
// Empty unless there are at least two hosts, each with the same number of ranks, at least two. Cost: linear in the
// table.
LatenessTable lateness_of_hosts(const LatenessTable& ranks, std::span<const std::uint32_t> host_of_rank);

}  // namespace paceline::analysis
