// SPDX-License-Identifier: Apache-2.0
// The critical path as segments between places, for pictures.
#include <algorithm>

#include "analysis/graph/critical_path.h"

namespace paceline::analysis {
namespace path_segment_parts {

// The innermost slice that is open just before the time, or else just after it.
std::optional<std::uint32_t> slice_at(const Slices& slices, std::int64_t time_ns, bool before) {
  const auto open = [&](std::size_t i) {
    return before ? slices.start_ns[i] < time_ns && time_ns <= slices.end_ns(i)
                  : slices.start_ns[i] <= time_ns && time_ns < slices.end_ns(i);
  };
  auto i = static_cast<std::size_t>(std::ranges::upper_bound(slices.start_ns, time_ns) - slices.start_ns.begin());
  // Slices nest: one of depth d that has ended was inside a slice of a smaller depth that began before it.
  for (std::uint32_t deepest = ~0U; i-- > 0 && deepest > 0;) {
    if (slices.depth[i] >= deepest) continue;
    if (open(i)) return static_cast<std::uint32_t>(i);
    // A slice that begins at the time may have others of its depth before it.
    if (slices.start_ns[i] < time_ns) deepest = slices.depth[i];
  }
  return std::nullopt;
}

PathPlace place(const Trace& trace, const TrackDependencies& of, std::int64_t time_ns, bool before) {
  const Slices& slices = trace.ranks[of.rank].tracks[of.track].slices;
  return {of.rank, of.track, time_ns, slice_at(slices, time_ns, before)};
}

}  // namespace path_segment_parts

std::vector<PathSegment> path_segments(const Trace& trace, const DependencyGraph& graph, const CriticalPath& path,
                                       std::int64_t from_ns, std::int64_t until_ns) {
  using namespace path_segment_parts;
  const std::vector<PathStretch>& all = path.stretches;  // the latest first
  const auto begin = std::ranges::partition_point(all, [&](const PathStretch& of) { return of.from_ns >= until_ns; });
  const auto end = std::partition_point(begin, all.end(), [&](const PathStretch& of) { return of.until_ns > from_ns; });
  std::vector<PathSegment> segments;
  for (auto at = end; at != begin;) {
    --at;
    // Before a transfer, the path was on the track of its cause.
    const bool moves = at->transfer && at + 1 != all.end();
    const GraphTrack cause = moves ? (at + 1)->track : at->track;
    segments.push_back({place(trace, graph.tracks[cause], at->from_ns, at->transfer),
                        place(trace, graph.tracks[at->track], at->until_ns, true), at->transfer, at->kind});
  }
  return segments;
}

}  // namespace paceline::analysis
