// SPDX-License-Identifier: Apache-2.0
// The phases of a rank as a list, for tests that look at single intervals, iterations or the overlap.
#pragma once

#include <utility>
#include <vector>

#include "analysis/device/overlap.h"
#include "analysis/phases/iterations.h"
#include "analysis/phases/phase_walk.h"

namespace paceline::analysis {

struct RankPhases {
  std::array<std::int64_t, phase_count> total_ns{};
  std::vector<PhaseInterval> intervals;
};

inline RankPhases phases_of(const PhaseTable& table, const Rank& rank) {
  RankPhases result;
  each_phase_interval(table, rank, gpu_activity(table, rank).exposed(), [&](const PhaseInterval& interval) {
    result.total_ns[static_cast<std::size_t>(interval.phase)] += interval.end_ns - interval.start_ns;
    result.intervals.push_back(interval);
  });
  return result;
}

inline std::vector<Iteration> iterations_of(const PhaseTable& table, const Rank& rank, const RankPhases& phases) {
  std::vector<Iteration> iterations = iterations_of(table, rank);
  IterationPhases sums(iterations);
  for (const PhaseInterval& interval : phases.intervals) sums.add(interval);
  return iterations;
}

inline std::optional<Overlap> overlap_of(const PhaseTable& table, const Rank& rank, const RankPhases& phases) {
  Intervals compute;
  for (const PhaseInterval& interval : phases.intervals) {
    if (is_compute(interval.phase)) compute.push_back({interval.start_ns, interval.end_ns});
  }
  return overlap_of(table, rank, std::move(compute), gpu_activity(table, rank));
}

}  // namespace paceline::analysis
