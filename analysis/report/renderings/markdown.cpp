// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analysis/report/outline.h"
#include "analysis/report/render.h"
#include "analysis/report/renderings/cards.h"
#include "analysis/report/renderings/text_parts.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"
#include "analysis/text/labels.h"

namespace paceline::analysis {
namespace markdown_rendering {

void print_findings(const Report& report, const char* heading, const std::vector<Finding>& findings, bool with_costs,
                    std::string& out) {
  if (findings.empty()) return;
  out += fmt::format("\n{}\n\n", heading);
  for (const auto& finding : findings) {
    const char* word = finding.severity == Severity::info      ? ""
                       : finding.severity == Severity::warning ? "**Warning:** "
                                                               : "**Problem:** ";
    const std::string cost = with_costs ? reason_prefix(report, finding) : "";
    out += fmt::format("- {}{}\n", word, markdown_escaped(cost + finding.text));
  }
}

}  // namespace markdown_rendering

std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (const char c : printable_lines(text)) {
    if (std::string_view("|\\*_`<[").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void print_markdown_tables(const std::vector<Table>& tables, std::string& out) {
  for (const Table& table : tables) {
    out += fmt::format("\n### {}\n\n", markdown_escaped(table.title));
    const auto line = [&](const std::vector<std::string>& cells) {
      out += "|";
      for (const auto& cell : cells) out += fmt::format(" {} |", markdown_escaped(cell));
      out += "\n";
    };
    line(table.columns);
    out += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c) out += table.is_text(c) ? "---|" : "---:|";
    out += "\n";
    for (const auto& row : table.rows) line(row);
    if (!table.note.empty()) out += fmt::format("\n{}\n", markdown_escaped(table.note));
  }
}

std::string render_markdown(const Report& report, Extent extent) {
  using namespace markdown_rendering;
  const Outline outline = outline_of(report, Table::Place::documents, extent);
  std::string out = fmt::format("# Paceline report\n\n**{}** {}\n", markdown_escaped(report.verdict.state),
                                markdown_escaped(report.verdict.change));
  if (extent == Extent::summary) print_markdown_tables({cards_table(report)}, out);
  bool drawn = false;
  for (const Chart& chart : outline.picture) {
    if (chart.bars.empty()) continue;
    out += fmt::format("{}\n```\n{}```\n", drawn ? "" : "\n## The picture\n", bars_text(chart));
    drawn = true;
  }
  print_findings(report, "## Reasons, by what they cost a rank\n\nCosts overlap.", outline.reasons, true, out);
  if (!outline.changes.empty()) out += "\n## Changes that pay\n";
  print_markdown_tables(outline.changes, out);
  if (!outline.tables.empty() || !outline.remarks.empty()) out += "\n## Details of the scaling\n";
  print_markdown_tables(outline.tables, out);
  print_findings(report, "### About these figures", outline.remarks, false, out);
  for (std::size_t r = 0; r < outline.runs.size(); ++r) {
    out += fmt::format("\n## {}\n\n{}\n", markdown_escaped(report.runs[r].name),
                       markdown_escaped(run_summary(report.runs[r])));
    print_markdown_tables(outline.runs[r].tables, out);
    print_findings(report, "### About this run", outline.runs[r].findings, false, out);
  }
  return printable_lines(out);
}

}  // namespace paceline::analysis
