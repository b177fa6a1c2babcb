// SPDX-License-Identifier: Apache-2.0
// Which calls of the ranks are one collective: from a call on one rank to those of all others.
//
//   for (const CollectiveIndex::Call& call : insight.collectives.with(slice)) …   // by rank; empty for other slices
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/communication/collectives.h"
#include "viewer/session/run.h"

namespace paceline::viewer {

class CollectiveIndex {
 public:
  struct Call {
    std::uint32_t rank = 0, track = 0, slice = 0;  // indices into Run::ranks, Rank::tracks and its slices
    std::int64_t from_ns = 0, end_ns = 0;          // from the rank's arrival to the end of its call

    SliceRef ref() const { return {.rank = rank, .track = track, .slice = slice}; }
  };

  CollectiveIndex() = default;
  // `ranks` are those that `collectives` was made from. Cost: n log n in the calls.
  CollectiveIndex(const analysis::Collectives& collectives, std::span<const analysis::CollectiveCalls> ranks);

  // All calls of the collective that this slice is a call of. O(log n).
  std::span<const Call> with(const SliceRef& slice) const;
  // The call of the rank that began last before this time, if it reaches to within `slack_ns` of it. O(log n).
  std::optional<SliceRef> at(std::size_t rank, double time_ns, double slack_ns) const;

 private:
  std::span<const Call> calls_of(std::uint32_t collective) const;

  std::vector<Call> calls_;                         // collective after collective
  std::vector<std::size_t> first_;                  // of a collective in calls_; one more at the end
  std::vector<std::vector<std::uint32_t>> places_;  // of each rank: collectives by track and slice of its call
  std::vector<std::vector<std::uint32_t>> times_;   // of each rank: collectives by from_ns of its call
};

}  // namespace paceline::viewer
