// Why a rank is slow, and why the report cannot claim that no rank is.
#pragma once

#include <numeric>
#include <string>

#include "analysis/report/values.h"
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// What takes a late rank longer, as the subject of a sentence: "backward".
inline std::string slow_phase_name(const PhaseExcess& slow) {
  return slow.phase == Phase::other ? "code outside all phases (other)" : std::string(phase_name(slow.phase));
}

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
