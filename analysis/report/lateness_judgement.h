// Why the report cannot claim that no rank is slow.
#pragma once

#include <numeric>
#include <string>

#include "analysis/report/values.h"
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// A clause without a full stop: the run is too short, or its clocks may differ by more than a lateness that would
// matter. "" where the test of lateness can be relied on.
inline std::string why_lateness_is_unknown(const RunAnalysis& run) {
  if (!run.lateness.judged) return "the run is too short to tell whether a rank is slow";
  const auto& steps_ns = run.lateness_table.step_ns;
  if (steps_ns.empty()) return "";
  const double mean_ns = std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0) / static_cast<double>(steps_ns.size());
  const double hidden_ns = run.lateness_table.collectives * run.clock_error_ns;
  if (hidden_ns < least_lateness_cost * mean_ns) return "";
  return fmt::format("the clocks of the ranks may differ by {}, too much to tell whether a rank is slow",
                     seconds(1e-9 * run.clock_error_ns));
}

}  // namespace paceline::analysis
