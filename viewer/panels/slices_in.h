// SPDX-License-Identifier: Apache-2.0
// Visits the slices of a part of a run, for panels that add them up in a worker thread.
#pragma once

#include <algorithm>
#include <optional>
#include <set>

#include "viewer/session/background.h"
#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

// What is added up: the selected range of time and its ranks, or everything.
struct Part {
  std::optional<TimeRange> range;
  std::set<std::size_t> ranks;  // empty: all

  bool on(std::size_t rank) const { return ranks.empty() || ranks.contains(rank); }
};

// The slices of a track that begin in the part: the first one, and the one after the last. O(log n).
inline std::pair<std::size_t, std::size_t> slices_in(const Part& part, const analysis::Slices& slices) {
  if (!part.range) return {0, slices.size()};
  const auto at = [&](double time) {
    const auto& starts = slices.start_ns;
    return std::size_t(std::ranges::partition_point(starts, [&](std::int64_t start) { return double(start) < time; }) -
                       starts.begin());
  };
  return {at(part.range->begin_ns), at(part.range->end_ns)};
}

// Calls visit(SliceRef, KindId, duration in ns) for each slice that begins in the part, track by track. Ends early if
// cancelled. Cost: linear in these slices.
template <class Visit>
void each_slice_in(const Run& run, const Part& part, const Ticket& ticket, Visit visit) {
  const auto& ranks = run.trace.ranks;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!part.on(rank)) continue;
    for (std::size_t track = 0; track < ranks[rank].tracks.size() && !ticket.cancelled(); ++track) {
      const analysis::Slices& slices = ranks[rank].tracks[track].slices;
      const auto [begin, end] = slices_in(part, slices);
      for (std::size_t i = begin; i < end; ++i) {
        visit(SliceRef{.rank = rank, .track = track, .slice = std::uint32_t(i)}, slices.kind[i], slices.duration_ns[i]);
      }
    }
  }
}

}  // namespace paceline::viewer
