// SPDX-License-Identifier: Apache-2.0
// Collectives that some ranks never entered, and ranks that did not end by themselves.
#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace hangs_section {

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  for (const Hang& hang : run.hangs)
    out.push_back({.severity = Severity::problem, .text = hang_text(hang), .kind = "hang"});
  if (!run.hang_stacks.empty()) out.push_back({.severity = Severity::problem, .text = run.hang_stacks, .kind = "hang"});
  std::string text = sudden_ends_text(run.per_rank);
  if (text.empty()) return;
  text += " The run is left out of the scaling section";
  if (const std::size_t finished = run.iterations.count; finished > 0) {
    const std::string iterations = plural(finished, "iteration", "iterations");
    text += run.images ? fmt::format("; its images are those of the {} that all ranks finished", iterations)
                       : fmt::format("; all ranks finished {}", iterations);
  }
  out.push_back({Severity::problem, text + "."});
}

void figures(const RunAnalysis& run, Json& out) {
  out["ended"] = run.ended;
  for (const Hang& hang : run.hangs) out["hangs"].push_back(hang_text(hang));
  if (!run.hang_stacks.empty()) out["hang_stacks"] = run.hang_stacks;
}

}  // namespace hangs_section

RunSection sections::hangs() { return {.findings = hangs_section::findings, .figures = hangs_section::figures}; }

}  // namespace paceline::analysis
