// SPDX-License-Identifier: Apache-2.0
// What would make a step shorter: predictions, ranked.
#include <fmt/format.h>

#include "analysis/report/changes.h"
#include "analysis/report/predictions.h"
#include "analysis/report/sections.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace what_if_section {

constexpr double worth_a_finding = 0.1;  // of the step

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (!run.what_if) return;
  const Prediction* best = first_prediction(run);
  if (best == nullptr || best->ratio > 1 - worth_a_finding) return;
  std::string text = fmt::format("The change to make first is \"{}\": a step would take {} instead of {} on average.",
                                 best->title, seconds(best->step_s), seconds(run.what_if->step_s)) +
                     training_note(*best);
  for (const std::string& note : run.what_if->notes) text += " " + note;
  out.push_back({.severity = Severity::info,
                 .text = std::move(text),
                 .cost_s = (run.what_if->step_s - best->step_s) * static_cast<double>(run.iterations.count),
                 .is_change = true});
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  if (run.what_if) out.push_back(prediction_table(first_change_first(run)));
}

void figures(const RunAnalysis& run, Json& out) {
  if (run.what_if) out["what_if"] = predictions_json(first_change_first(run));
}

}  // namespace what_if_section

RunSection sections::what_if() {
  using namespace what_if_section;
  return {.findings = findings, .tables = tables, .figures = figures};
}

}  // namespace paceline::analysis
