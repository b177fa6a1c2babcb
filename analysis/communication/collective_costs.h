// SPDX-License-Identifier: Apache-2.0
// What limits the collectives of a run: the bandwidth of a link, or the fixed cost of many small calls.
//
// A collective of n bytes takes α + β n (R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20,
// 1994). Its time is the transfer: waiting for the last rank is excluded. Where n is below n½ = α/β, the fixed cost α
// is more than half of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/communication/collectives.h"
#include "analysis/communication/link_rates.h"
#include "analysis/phases/iterations.h"

namespace paceline::analysis {

// What the large collectives between one set of hosts, or of one host's GPUs, achieved.
struct LinkUse {
  std::vector<std::string> hosts;    // in the order of their first ranks
  std::vector<std::uint32_t> ranks;  // that took part, as in Collectives
  bool on_devices = false;           // NCCL's
  bool messages = false;             // of point-to-point messages instead of collectives (link_times.h)
  std::size_t collectives = 0;
  std::uint64_t bytes = 0;         // the median size
  double bytes_per_s = 0;          // the median bus bandwidth
  double fastest_bytes_per_s = 0;  // nine of ten collectives were slower
};

inline constexpr std::uint64_t least_large_collective = 256 * 1024;  // bytes
inline constexpr std::size_t fewest_large_collectives = 10;

// Collectives of at least 256 KiB that took at least four times as long as the median of those up to 4 KiB (if there
// are five of these), since the fixed cost then hardly counts. At least ten for each set of hosts. Sets of one host
// count only on devices. `ends` has one entry for each rank. Cost: n log n in the collectives.
std::vector<LinkUse> link_uses(const Collectives& collectives, std::span<const LinkEnd> ends);

// A link is slow if nine of ten large collectives stayed below this share of its rated speed.
inline constexpr double least_share_of_rate = 0.5;
// Where the rated speed of a network is not known, it is assumed to be 1 Gbit/s, the slowest in use.
inline constexpr double least_network_rate = 1.25e8;
// For a link whose rated speed is known, or 0.
bool is_slow(const LinkUse& use, double rated_bytes_per_s);

// Many calls in each iteration that are smaller than n½.
struct SmallCollectives {
  std::string operation;
  std::size_t iterations = 0;         // tested: without the warm-up, the first tenth
  double calls = 0;                   // smaller than n½, in an iteration, median
  std::uint64_t median_bytes = 0;     // of these calls
  std::int64_t fixed_ns = 0;          // α
  std::uint64_t half_bytes = 0;       // n½; 0: the time does not grow with the size
  double share_of_communication = 0;  // of the collectives of an iteration: their fixed costs, median
  double share_of_step = 0;           // the least over 19 of 20 iterations
  double exposed_share = 1;           // of the step: all communication not hidden beside computation; 1: not known

  // Buckets of gradients are for allreduces alone.
  bool are_buckets() const { return plain_operation(operation).find("allreduce") != std::string::npos; }
  double most_lost() const { return std::min(share_of_step, exposed_share); }  // of the step
};

inline constexpr double fewest_small_calls = 8;   // in an iteration
inline constexpr double least_fixed_cost = 0.05;  // of the step
inline constexpr std::size_t fewest_tested = 10;  // iterations

// Nothing unless 19 of 20 iterations have at least eight calls below n½ whose fixed costs are at least 5 % of the step.
// α and β are fitted to the median transfer of each size of the operation that transferred longest, by least squares of
// relative errors; sizes must differ by a factor of eight, or be at most 4 KiB. Calls in flight together count once:
// each has the time after the end of the one before. A barrier before one, such as ranks use to wait without a spin, is
// a part of it. `iterations` holds those of each rank. Cost: n log n in the collectives.
std::optional<SmallCollectives> small_collectives(const Collectives& collectives,
                                                  std::span<const std::span<const Iteration>> iterations);

}  // namespace paceline::analysis
