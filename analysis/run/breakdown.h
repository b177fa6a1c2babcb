// SPDX-License-Identifier: Apache-2.0
// The Amdahl-style breakdown of one run: which of its seconds shrink when ranks are added (docs/metrics.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/run/rank_summary.h"
#include "analysis/statistics/interval.h"

namespace paceline::analysis {

// Whether the time shrinks when ranks are added.
enum class CountsAs { parallel, serial, overhead };

constexpr const char* counts_as_name(CountsAs kind) {
  switch (kind) {
    case CountsAs::parallel:
      return "parallel";
    case CountsAs::serial:
      return "serial";
    case CountsAs::overhead:
      return "overhead";
  }
  return "";
}

struct BreakdownRow {
  Phase phase = Phase::other;
  bool inside_iterations = false;
  CountsAs counts_as = CountsAs::parallel;
  std::int64_t ns = 0;  // mean over ranks
};

struct Breakdown {
  std::int64_t wall_ns = 0;  // mean over ranks = parallel + serial + overhead, exactly
  std::int64_t parallel_ns = 0, serial_ns = 0, overhead_ns = 0;
  double serial_share = 0;                    // serial ÷ wall
  std::optional<Interval> serial_share_ci95;  // from the steady iterations; nothing where they are too few
  std::vector<BreakdownRow> rows;             // those above 0, the longest first
};

// What decides how a phase counts.
struct BreakdownRules {
  int ranks = 1;
  bool evaluate_on_all_ranks = false;
  bool global_batch_kept = false;  // ranks share one batch, so the optimizer step of an iteration does not shrink
};

CountsAs counts_as(Phase phase, bool inside_iterations, const BreakdownRules& rules);

// Means over ranks, rounded so that the rows add up to the mean wall time exactly.
Breakdown break_down(std::span<const RankSummary> ranks, const BreakdownRules& rules);

// Sorts the time of the rows into parallel, serial and overhead again, and computes the interval of the serial share:
// how far it varies with the time of the steady iterations. Everything else of the run is taken as fixed.
void classify(Breakdown& breakdown, const BreakdownRules& rules, std::span<const double> steady_seconds);

}  // namespace paceline::analysis
