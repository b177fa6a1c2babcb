// SPDX-License-Identifier: Apache-2.0
// Why a rank is slow, and why the report cannot claim that no rank is.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>

#include "analysis/report/values.h"
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// What takes a late rank longer, as the subject of a sentence: "backward".
inline std::string slow_phase_name(const PhaseExcess& slow) {
  if (slow.phase == Phase::evaluate) return "evaluation";
  return slow.phase == Phase::other ? "code outside all phases (other)" : std::string(phase_name(slow.phase));
}

inline bool on_slow_host(const RunAnalysis& run, const RankSummary& rank) {
  return std::ranges::any_of(run.host_lateness.late,
                             [&](const LateRank& host) { return run.hosts[host.rank] == rank.host; });
}

// The slow host, or the slow rank that is not on a slow host, that costs most; one of the two or neither.
struct Slowest {
  const LateRank *host = nullptr, *rank = nullptr;
};
inline Slowest slowest_of(const RunAnalysis& run) {
  Slowest slowest;
  if (!run.host_lateness.late.empty()) slowest.host = &run.host_lateness.late.front();
  for (const LateRank& late : run.lateness.late) {
    if (on_slow_host(run, run.per_rank[late.rank])) continue;
    if (slowest.host == nullptr || late.share_of_step > slowest.host->share_of_step) return {.rank = &late};
    break;
  }
  return slowest;
}

// A clause without a full stop: the run is too short, or its clocks may differ by more than a lateness that would
// matter. "" where the test of lateness can be relied on.
inline std::string why_lateness_is_unknown(const RunAnalysis& run) {
  if (!run.lateness.judged && run.lateness.late.empty()) return "the run is too short to tell whether a rank is slow";
  if (!run.wrong_clocks.empty()) {
    return fmt::format("the clock of {} seems off by {}, and waits are wrong by as much",
                       run.hosts[run.wrong_clocks.front().host], seconds(1e-9 * run.wrong_clocks.front().ahead_ns));
  }
  const auto& steps_ns = run.lateness_table.step_ns;
  if (steps_ns.empty()) return "";
  const double mean_ns = std::accumulate(steps_ns.begin(), steps_ns.end(), 0.0) / static_cast<double>(steps_ns.size());
  const double hidden_ns = run.lateness_table.collectives * run.clock_error_ns;
  if (hidden_ns < least_lateness_cost * mean_ns) return "";
  return fmt::format("the clocks of the ranks may differ by {}, too much to tell whether a rank is slow",
                     seconds(1e-9 * run.clock_error_ns));
}

}  // namespace paceline::analysis
