// SPDX-License-Identifier: Apache-2.0
// Why ranks lost time in collectives: the time in which each rank was blocked in them (blocked_time.h), by cause.
//
// Transfer is divided by transfer_profile.h. Waiting for the last member is divided by what the last rank did longer
// than the waiting rank since both left a collective, or else since the beginning of the iteration. The communication
// of both ranks is left out (excess_parts()). If the last rank left that collective later, the time between was a
// transfer, and the waiting has its causes first.
#pragma once

#include <functional>
#include <span>

#include "analysis/causes/rank_activity.h"
#include "analysis/communication/collectives.h"
#include "analysis/phases/iterations.h"

namespace paceline::analysis {

// An interval in which a rank was blocked.
struct CollectiveLoss {
  std::size_t rank = 0;
  BlockedTime interval;
  LossParts waiting;   // adds up to interval.wait_ns()
  LossParts transfer;  // adds up to the rest of the interval
};

// Calls visit once for each interval, by collective. Ranks are indices into `activities` and `iterations`. Cost: n log
// n in the intervals, that of TransferProfile for each collective (twice), and for each interval linear in those in
// which the two ranks were blocked since they left a collective together.
void each_collective_loss(const Collectives& collectives, std::span<const RankActivity> activities,
                          std::span<const std::span<const Iteration>> iterations,
                          const std::function<void(const CollectiveLoss&)>& visit);

}  // namespace paceline::analysis
