#include <fmt/format.h>

#include "analysis/report/render.h"
#include "analysis/report/renderings/text_parts.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"

namespace paceline::analysis {
namespace markdown_rendering {

void print_findings(const Report& report, std::optional<std::size_t> about, std::string& out) {
  for (const auto& finding : report.findings) {
    if (finding.run != about) continue;
    const char* word = finding.severity == Severity::info      ? ""
                       : finding.severity == Severity::warning ? "**Warning:** "
                                                               : "**Problem:** ";
    out += fmt::format("- {}{}\n", word, markdown_escaped(finding.text));
  }
}

}  // namespace markdown_rendering

std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
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

std::string render_markdown(const Report& report) {
  using namespace markdown_rendering;
  std::string out = fmt::format("# Paceline report\n\n**{}**\n\n", markdown_escaped(report.headline));
  print_findings(report, std::nullopt, out);
  const auto scaling = scaling_tables(report);
  if (!scaling.empty()) out += "\n## Scaling\n";
  print_markdown_tables(scaling, out);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const auto& run = report.runs[r];
    out += fmt::format("\n## {}\n\n{}\n\n", markdown_escaped(run.name), markdown_escaped(run_summary(run)));
    print_findings(report, r, out);
    print_markdown_tables(run_tables(run, Table::Place::documents), out);
  }
  return out;
}

}  // namespace paceline::analysis
