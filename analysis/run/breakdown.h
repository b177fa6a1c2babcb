// The Amdahl-style breakdown of one run: which of its seconds shrink when ranks are added (docs/metrics.md).
#pragma once

#include <span>
#include <vector>

#include "analysis/metrics/iterations.h"
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// What decides how a phase counts.
struct BreakdownRules {
  int ranks = 1;
  bool evaluate_on_all_ranks = false;
  bool global_batch_kept = false;  // ranks share one batch: each iteration's optimizer step stays as long
};

CountsAs counts_as(Phase phase, bool inside_iterations, const BreakdownRules& rules);

// Means over ranks, rounded so that the rows add up to the mean wall time exactly. `iterations` are those of each rank.
Breakdown break_down(std::span<const RankReport> ranks, std::span<const std::vector<Iteration>> iterations,
                     const BreakdownRules& rules);

// Sorts the rows' time into parallel, serial and overhead anew, and the interval of the serial share with them: how far
// it varies with the time of the steady iterations. Everything else of the run is taken as fixed.
void classify(Breakdown& breakdown, const BreakdownRules& rules, std::span<const double> steady_seconds);

}  // namespace paceline::analysis
