#include <fmt/format.h>

#include "analysis/report/render.h"
#include "analysis/report/tables.h"

namespace paceline::analysis {
namespace {

// What Markdown would take for markup in a cell or sentence.
std::string in_markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '`' || c == '<' || c == '[') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

void print_table(const Table& table, const char* heading, std::string& out) {
  out += fmt::format("\n{} {}\n\n", heading, in_markdown(table.title));
  std::string rule = "|";
  const auto line = [&](const std::vector<std::string>& cells) {
    out += "|";
    for (const auto& cell : cells) out += fmt::format(" {} |", in_markdown(cell));
    out += "\n";
  };
  line(table.columns);
  for (std::size_t c = 0; c < table.columns.size(); ++c) rule += table.is_text(c) ? "---|" : "---:|";
  out += rule + "\n";
  for (const auto& row : table.rows) line(row);
  if (!table.note.empty()) out += fmt::format("\n{}\n", in_markdown(table.note));
}

}  // namespace

std::string render_markdown(const Report& report) {
  std::string out = fmt::format("# Paceline report\n\n**{}**\n\n", in_markdown(report.headline));
  const auto say = [&](std::optional<std::size_t> about) {
    for (const auto& finding : report.findings) {
      if (finding.run != about) continue;
      const char* word = finding.severity == Severity::info      ? ""
                         : finding.severity == Severity::warning ? "**Warning:** "
                                                                 : "**Problem:** ";
      out += fmt::format("- {}{}\n", word, in_markdown(finding.text));
    }
  };
  say(std::nullopt);
  const auto scaling = scaling_tables(report);
  if (!scaling.empty()) out += "\n## Scaling\n";
  for (const auto& table : scaling) print_table(table, "###", out);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const auto& run = report.runs[r];
    out += fmt::format("\n## {}\n\n{}\n\n", in_markdown(run.name), in_markdown(run_summary(run)));
    say(r);
    for (const auto& table : run_tables(run)) print_table(table, "###", out);
  }
  return out;
}

}  // namespace paceline::analysis
