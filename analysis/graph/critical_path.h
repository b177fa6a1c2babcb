// SPDX-License-Identifier: Apache-2.0
// The critical path of a run through all ranks, threads and streams: the chain of work and transfers that decided when
// the last iteration ended.
//
// The path is found by a walk backwards from the last end. Where a track had waited, the walk goes to the cause of the
// wait, at its time (D. Böhme, F. Wolf, B. R. de Supinski, M. Schulz, M. Geimer, "Scalable critical-path based
// performance analysis", IPDPS 2012). The time between the cause and the end of the wait is transfer. Every nanosecond
// between the first start and the last end is on the path once.
//
// The window of an iteration goes from its first start over the ranks, or the end of the previous iteration's window if
// that is later, to its last end over the ranks. The path's time in the windows adds up to their length exactly.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/graph/dependencies.h"

namespace paceline::analysis {

// A stretch of the path on one track, [from_ns, until_ns). A transfer is the time from the cause of a wait to its end.
struct PathStretch {
  GraphTrack track = 0;
  std::int64_t from_ns = 0, until_ns = 0;
  bool transfer = false;
  DependencyKind kind = DependencyKind::collective;  // of a transfer
};

// The path that ends on `track` at end_ns, the latest stretch first, down to stop_ns. Cost: linear in the dependencies.
std::vector<PathStretch> walk_back(const DependencyGraph& graph, GraphTrack track, std::int64_t end_ns,
                                   std::int64_t stop_ns);

struct PathName {
  std::string name, domain;  // of the innermost range, call or kernel; both "" outside of all
  std::int64_t ns = 0;
};

struct PathIteration {
  std::int64_t number = 0;
  std::int64_t start_ns = 0, wall_ns = 0;  // of its window
  std::array<std::int64_t, phase_count> phase_ns{};
  std::vector<std::int64_t> work_ns;  // of each rank, without communication
};

// How much longer a rank could take for a phase in each iteration before the path would move to it.
struct PathSlack {
  std::array<std::optional<std::int64_t>, phase_count> phase_ns;  // mean over the iterations; nothing: never in it
};

struct CriticalPath {
  std::int64_t wall_ns = 0;                                          // of all windows
  std::vector<std::array<std::int64_t, phase_count>> rank_phase_ns;  // by index into Trace::ranks; adds up to wall_ns
  std::vector<PathName> names;                                       // the longest first, at most 50
  std::vector<PathIteration> iterations;
  std::vector<PathSlack> slack;        // of each rank
  std::vector<PathStretch> stretches;  // the latest first; for pictures

  std::int64_t phase_ns(Phase phase) const;      // over all ranks
  std::int64_t work_ns(std::size_t rank) const;  // the rank's time on the path without communication
};

// Nothing without iterations that all ranks finished. Cost: as dependency_graph, and linear in the slices of the tracks
// that the path touches.
std::optional<CriticalPath> critical_path(const RunIndex& index, const DependencyGraph& graph);

// A place on the path: the innermost slice there, if there is one. Indices into Trace::ranks, Rank::tracks,
// Track::slices.
struct PathPlace {
  std::uint32_t rank = 0, track = 0;
  std::int64_t time_ns = 0;
  std::optional<std::uint32_t> slice;
};
// A stretch of the path for a picture. Work stays on one track; a transfer leads from the track of its cause to the
// track that waited for it.
struct PathSegment {
  PathPlace from, to;
  bool transfer = false;
  DependencyKind kind = DependencyKind::collective;  // of a transfer
};
// The segments that touch [from_ns, until_ns), the earliest first; whole, also where they reach beyond it. Cost:
// logarithmic in the path, linear in the segments and in the slices that stand beside each place.
std::vector<PathSegment> path_segments(const Trace& trace, const DependencyGraph& graph, const CriticalPath& path,
                                       std::int64_t from_ns, std::int64_t until_ns);

// The total float of each track at each time, as steps: by how much the track's work before that time could grow
// without making the run longer. The latest step first; a step holds from the time of the step after it up to its own
// time.
struct FloatStep {
  std::int64_t time_ns = 0, float_ns = 0;
};
// `ends_ns`: when the main thread of each rank is done. Cost: n log n in the dependencies.
std::vector<std::vector<FloatStep>> total_floats(const DependencyGraph& graph, std::span<const std::int64_t> ends_ns);

}  // namespace paceline::analysis
