// The summary on the terminal.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/render.h"
#include "analysis/report/renderings/text_parts.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"

namespace paceline::analysis {
namespace {

// The number of characters, which are one column wide each.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t columns, bool right) {
  const std::string space(columns - std::min(columns, width(text)), ' ');
  return right ? space + text : text + space;
}

const char* sign(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "  · ";
    case Severity::warning:
      return "  ! ";
    case Severity::problem:
      return "  ✗ ";
  }
  return "";
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t columns, const std::string& first, const std::string& indent) {
  std::string out, line = first;
  bool fresh = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!fresh && width(line) + 1 + width(word) > columns) {
      out += line + "\n";
      line = indent;
      fresh = true;
    }
    line += (fresh ? "" : " ") + word;
    fresh = false;
    at = end + 1;
  }
  return out + line + "\n";
}

void print_table(const Table& table, std::string& out) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    widths.push_back(width(table.columns[c]));
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], width(row[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text = " ";
    for (std::size_t c = 0; c < cells.size(); ++c)
      text.append(" ").append(padded(cells[c], widths[c], !table.is_text(c))).append(" ");
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  out += "\n" + table.title + "\n";
  line(table.columns);
  for (const auto& row : table.rows) line(row);
}

std::string render_text(const Report& report) {
  std::string out = wrapped(report.headline, 110, "", "");
  out += "\n";
  const auto print_findings = [&](std::optional<std::size_t> about) {
    for (const auto& finding : report.findings) {
      if (finding.run == about) out += wrapped(finding.text, 110, sign(finding.severity), "    ");
    }
  };
  print_findings(std::nullopt);
  for (const auto& table : scaling_tables(report)) print_table(table, out);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    const auto& run = report.runs[r];
    out += fmt::format("\n── {}: {}\n", run.name, run_summary(run));
    if (report.runs.size() > 1) out += "\n";
    print_findings(r);
    for (const auto& table : run_tables(run, Table::Place::terminal)) print_table(table, out);
  }
  return out;
}

}  // namespace paceline::analysis
