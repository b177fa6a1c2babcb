// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/track_phases.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "analysis/trace/innermost.h"

namespace paceline::analysis {
namespace track_phase_parts {

// What the main thread did when it launched the work that began at start_ns. The launch itself is a phase of the main
// thread, and what it is for stands before it.
std::optional<Phase> phase_at_launch(const TrackDependencies& stream, const std::vector<PhaseInterval>& main,
                                     std::int64_t start_ns) {
  auto wait = std::ranges::lower_bound(stream.waits, start_ns, {}, &Dependency::until_ns);
  while (wait != stream.waits.end() && wait->until_ns == start_ns && wait->kind != DependencyKind::launch) ++wait;
  if (wait == stream.waits.end() || wait->until_ns != start_ns) return std::nullopt;
  auto at = std::ranges::upper_bound(main, wait->cause_ns, {}, &PhaseInterval::start_ns);
  while (at != main.begin()) {
    const Phase phase = (--at)->phase;
    if (phase != Phase::launch && phase != Phase::copy && phase != Phase::idle) return phase;
  }
  return std::nullopt;
}

}  // namespace track_phase_parts

void each_phase_of(const RunIndex& index, const TrackDependencies& track, std::int64_t until_ns,
                   const std::function<void(const PhaseInterval&)>& visit) {
  const Rank& rank = index.trace().ranks[track.rank];
  if (track.main) return index.each_phase_interval(track.rank, visit);
  std::vector<PhaseInterval> main;
  if (rank.tracks[track.track].kind == TrackKind::stream) {
    index.each_phase_interval(track.rank, [&](const PhaseInterval& part) { main.push_back(part); });
  }
  const Slices& slices = rank.tracks[track.track].slices;
  std::vector<std::optional<Phase>> by_depth;
  std::uint32_t seen = 0;  // slices whose phase is in by_depth
  each_innermost(slices, until_ns, [&](std::int64_t from, std::int64_t until, std::uint32_t slice) {
    for (; seen <= slice; ++seen) {
      const std::uint16_t depth = slices.depth[seen];
      by_depth.resize(depth + 1U);
      by_depth[depth] = index.phases().phase(slices.kind[seen]);
      if (!by_depth[depth] && depth > 0) by_depth[depth] = by_depth[depth - 1U];
      if (!by_depth[depth] && !main.empty()) {
        by_depth[depth] = track_phase_parts::phase_at_launch(track, main, slices.start_ns[seen]);
      }
    }
    const std::uint16_t depth = slices.depth[slice];
    visit({from, until, depth < by_depth.size() ? by_depth[depth].value_or(Phase::other) : Phase::other});
  });
}

}  // namespace paceline::analysis
