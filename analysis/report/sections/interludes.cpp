// SPDX-License-Identifier: Apache-2.0
// Evaluations and checkpoints of one rank, for which the others wait.
#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace interludes_section {

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  constexpr double least = 0.01, much = 0.05;  // of the wall time
  for (const LoneInterludes& lone : run.lone_interludes) {
    const double of_wall = share(lone.waited_ns, run.wall_ns);
    if (of_wall < least) continue;
    const bool evaluates = lone.phase == Phase::evaluate;
    const bool two = run.per_rank.size() == 2;
    out.push_back({.severity = of_wall >= much ? Severity::warning : Severity::info,
                   .text = fmt::format(
                       "Rank {} alone {} ({}), and the other {} {} for it in collectives{} ({} of the wall time). {}",
                       run.per_rank[lone.rank].rank, evaluates ? "evaluates" : "saves checkpoints",
                       plural(lone.count, "time", "times"), two ? "rank waits" : "ranks wait", duration(lone.waited_ns),
                       two ? "" : " on average", percent(of_wall),
                       evaluates ? "Divide the evaluation among the ranks, or evaluate less often."
                                 : "Save less often, or write checkpoints in the background."),
                   .cost_s = 1e-9 * static_cast<double>(lone.waited_ns),
                   .places = {{.rank = lone.rank}}});
  }
}

}  // namespace interludes_section

RunSection sections::interludes() { return {.findings = interludes_section::findings}; }

}  // namespace paceline::analysis
