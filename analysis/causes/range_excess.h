// SPDX-License-Identifier: Apache-2.0
// In which ranges of the main threads the time of some iterations was lost, compared with other iterations or ranks.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/causes/rank_activity.h"
#include "analysis/phases/iterations.h"

namespace paceline::analysis {

// The mean time of an iteration in each innermost range, by kind; outside of collectives.
struct RangeProfile {
  // By KindId; then in the iteration itself, by the kind of the last range in it; then without such a range.
  std::vector<LossParts> kinds;
  double iterations = 0;
};

// Of the iterations of a rank that `chosen` accepts. `blocked` are the rank's intervals in collectives. Cost: linear in
// the main thread's slices, times log of its switches.
RangeProfile range_profile(const PhaseTable& phases, const Trace& trace, const Rank& rank, const RankActivity& activity,
                           std::span<const BlockedTime> blocked, std::span<const Iteration> iterations,
                           const std::function<bool(const Iteration&)>& chosen);

// The mean of several, weighted with their iterations.
RangeProfile mean_profile(std::span<const RangeProfile> profiles);

// The range and the cause that exceed the usual ones most; never the iteration itself or what is around it. Nothing
// where they are less than a quarter of the excess.
std::optional<CausePlace> largest_excess(const Trace& trace, const RangeProfile& longer, const RangeProfile& usual);

}  // namespace paceline::analysis
