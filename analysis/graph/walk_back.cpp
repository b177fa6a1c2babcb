// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/graph/critical_path.h"

namespace paceline::analysis {

std::vector<PathStretch> walk_back(const DependencyGraph& graph, GraphTrack track, std::int64_t end_ns,
                                   std::int64_t stop_ns) {
  std::vector<PathStretch> path;
  // Time never rises on the walk, so what a track has passed stays passed. Each wait is used once, so the walk ends.
  std::vector<std::size_t> left;
  for (const TrackDependencies& of : graph.tracks) left.push_back(of.waits.size());
  const auto add = [&](GraphTrack on, std::int64_t from, std::int64_t until, bool transfer, DependencyKind kind) {
    from = std::max(from, stop_ns);
    if (until > from) path.push_back({on, from, until, transfer, kind});
  };
  for (std::int64_t now = end_ns; now > stop_ns;) {
    const std::vector<Dependency>& waits = graph.tracks[track].waits;
    const Dependency* wait = nullptr;
    while (left[track] > 0 && wait == nullptr) {
      const Dependency& last = waits[--left[track]];
      if (last.until_ns <= now && last.binding()) wait = &last;
    }
    if (wait == nullptr) {
      add(track, stop_ns, now, false, {});
      break;
    }
    // Of the waits that ended at this time, the one whose cause came last released the track.
    for (std::size_t i = left[track]; i > 0 && waits[i - 1].until_ns == wait->until_ns; --i) {
      if (waits[i - 1].cause_ns > wait->cause_ns) wait = &waits[i - 1];
    }
    while (left[track] > 0 && waits[left[track] - 1].until_ns == wait->until_ns) --left[track];
    add(track, wait->until_ns, now, false, {});
    add(track, wait->cause_ns, wait->until_ns, true, wait->kind);
    now = wait->cause_ns;
    track = wait->cause;
  }
  return path;
}

}  // namespace paceline::analysis
