// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/outline.h"

#include <algorithm>

#include "analysis/report/changes.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {

bool is_reason(const Finding& finding) { return finding.cost_s.has_value() || finding.severity != Severity::info; }

bool comes_before(const Finding& a, const Finding& b) {
  const bool problem_a = a.severity == Severity::problem, problem_b = b.severity == Severity::problem;
  if (problem_a != problem_b) return problem_a;
  return a.cost_s.value_or(0) > b.cost_s.value_or(0);
}

namespace outline_parts {

// Moves the charts of the picture to its end.
void take_picture(std::vector<Chart>& charts, std::vector<Chart>& picture) {
  const auto others = std::ranges::stable_partition(charts, [](const Chart& chart) { return !chart.picture; });
  std::ranges::move(others, std::back_inserter(picture));
  charts.erase(others.begin(), others.end());
}

// Keeps what fits one page: two charts, the reasons that cost most with their first sentence, and the best changes.
void shorten(Outline& outline) {
  constexpr std::size_t charts = 2, reasons = 5, changes = 3;
  // The time of iterations matters more than the division of the whole run.
  std::ranges::stable_partition(outline.picture, [](const Chart& chart) { return chart.kind == "iterations"; });
  outline.picture.resize(std::min(charts, outline.picture.size()));
  for (Chart& chart : outline.picture) chart.height = std::min(chart.height, 170);
  outline.reasons.resize(std::min(reasons, outline.reasons.size()));
  for (Finding& reason : outline.reasons) reason.text = split_sentences(reason.text).first;
  outline.changes.resize(std::min<std::size_t>(1, outline.changes.size()));
  for (Table& table : outline.changes) {
    table.rows.resize(std::min(changes, table.rows.size()));
    table.note.clear();
    // What a step becomes, without how it was computed.
    for (std::size_t c = table.columns.size(); c-- > 0;) {
      if (table.columns[c] != "median step" && table.columns[c] != "moves") continue;
      const auto at = static_cast<std::ptrdiff_t>(c);
      table.columns.erase(table.columns.begin() + at);
      for (auto& row : table.rows) row.erase(row.begin() + at);
      table.last_is_text = table.last_is_text && c < table.columns.size();
    }
  }
  outline.remarks.clear(), outline.tables.clear(), outline.charts.clear(), outline.runs.clear();
}

}  // namespace outline_parts

Outline outline_of(const Report& report, Table::Place place, Extent extent) {
  using namespace outline_parts;
  Outline out{.focus = focus_of(report)};
  out.tables = scaling_tables(report);
  out.charts = scaling_charts(report);
  take_picture(out.charts, out.picture);
  out.changes = change_tables(report);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    RunDetails& details = out.runs.emplace_back();
    details.tables = run_tables(report.runs[r], place);
    details.charts = run_charts(report.runs[r]);
    if (r != out.focus) continue;
    if (headline_lost_time(report) != nullptr) {  // then the waterfall shows it
      for (Chart& chart : details.charts) chart.picture = chart.picture && chart.kind != "lasting";
    }
    take_picture(details.charts, out.picture);
    std::erase_if(details.tables, [](const Table& table) { return table.id == "what-if"; });  // among the changes
  }
  for (const Finding& finding : report.findings) {
    const bool of_one_run = report.runs.size() == 1 && !finding.run;
    const bool about_focus = !finding.run || finding.run == out.focus;
    if (finding.is_change && about_focus) continue;
    const bool is_problem = finding.severity == Severity::problem;
    if (is_reason(finding) && (about_focus || is_problem)) {
      out.reasons.push_back(finding);
    } else if (finding.run || of_one_run) {
      out.runs[finding.run.value_or(0)].findings.push_back(finding);
    } else {
      out.remarks.push_back(finding);
    }
  }
  std::ranges::stable_sort(out.reasons, comes_before);
  if (extent == Extent::summary) shorten(out);
  return out;
}

std::string reason_prefix(const Report& report, const Finding& reason) {
  std::string text;
  if (reason.run && report.runs.size() > 1) text = report.runs[*reason.run].name + ", ";
  if (reason.cost_s && *reason.cost_s > 0) text += seconds(*reason.cost_s) + ": ";
  if (text.ends_with(", ")) text.replace(text.size() - 2, 2, ": ");
  return text;
}

Split split_sentences(const std::string& text) {
  for (std::size_t at = text.find(". "); at != std::string::npos; at = text.find(". ", at + 1)) {
    const char next = at + 2 < text.size() ? text[at + 2] : ' ';
    if (next >= 'A' && next <= 'Z') return {text.substr(0, at + 1), text.substr(at + 2)};
  }
  return {text, ""};
}

}  // namespace paceline::analysis
