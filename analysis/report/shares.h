// Shares of the wall time, over all ranks of a run.
#pragma once

#include "analysis/run/run_analysis.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {

// The sum of one phase over ranks, and of their wall times.
struct OfWall {
  std::int64_t ns = 0, wall_ns = 0;
  double share() const { return analysis::share(ns, wall_ns); }
};

inline OfWall phase_of_wall(const RunReport& run, Phase phase) {
  OfWall out;
  for (const auto& rank : run.per_rank) {
    out.ns += rank.phase_ns[static_cast<std::size_t>(phase)];
    out.wall_ns += rank.wall_ns;
  }
  return out;
}

}  // namespace paceline::analysis
