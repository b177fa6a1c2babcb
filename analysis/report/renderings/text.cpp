// SPDX-License-Identifier: Apache-2.0
// The summary on the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/report/outline.h"
#include "analysis/report/render.h"
#include "analysis/report/renderings/cards.h"
#include "analysis/report/renderings/text_parts.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"
#include "analysis/text/labels.h"

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

std::string wrapped(const std::string& raw, std::size_t columns, const std::string& first, const std::string& indent) {
  const std::string text = printable(raw);
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

void print_table(const Table& raw, std::string& out, std::size_t columns) {
  constexpr std::size_t longest_name = 72;  // kernels of C++ templates have names of hundreds of characters
  Table table = raw;
  for (auto& row : table.rows) {
    for (std::string& cell : row) cell = &cell == &row.front() ? label(cell, longest_name) : printable(cell);
  }
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    widths.push_back(width(table.columns[c]));
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], width(row[c]));
  }
  const std::size_t needed = std::accumulate(widths.begin(), widths.end(), 2 * widths.size());
  if (needed > columns) {
    widths[1] -= std::min(needed - columns, widths[1] - std::min<std::size_t>(widths[1], 24));
    for (auto& row : table.rows) {  // a domain is less than the name behind it, which differs from row to row
      const std::size_t colon = row[1].find(": ");
      if (width(row[1]) > widths[1] && colon != std::string::npos) row[1].erase(0, colon + 2);
      row[1] = label(row[1], widths[1]);
    }
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

std::string bars_text(const Chart& chart) {
  constexpr std::size_t most_bars = 12, columns = 48;
  std::vector<const Bar*> bars;
  for (const Bar& bar : chart.bars) bars.push_back(&bar);
  const std::size_t left_out = bars.size() - std::min(bars.size(), most_bars);
  if (left_out > 0) {
    std::ranges::stable_sort(bars, std::greater(), [](const Bar* bar) { return std::abs(bar->to - bar->from); });
    bars.resize(most_bars);
  }
  double low = chart.origin, high = chart.origin;
  std::size_t labels = 0;
  for (const Bar* bar : bars) {
    low = std::min({low, bar->from, bar->to}), high = std::max({high, bar->from, bar->to});
    labels = std::max(labels, width(printable(bar->label)));
  }
  const double scale = high > low ? static_cast<double>(columns) / (high - low) : 0;
  std::string out = printable(chart.title) + "\n";
  for (const Bar* bar : bars) {
    const double from = std::max(std::min(bar->from, bar->to), low), to = std::max(bar->from, bar->to);
    const auto begin = static_cast<std::size_t>(std::lround((from - low) * scale));
    const auto end = std::max(begin + 1, static_cast<std::size_t>(std::lround((to - low) * scale)));
    out += "  " + padded(printable(bar->label), labels, false) + "  " + std::string(begin, ' ');
    for (std::size_t i = begin; i < end; ++i) out += "█";
    out += " " + printable(bar->text) + "\n";
  }
  if (left_out > 0) out += fmt::format("  … and {} more\n", left_out);
  return out;
}

std::string render_text(const Report& report, Extent extent) {
  const Outline outline = outline_of(report, Table::Place::terminal, extent);
  std::string out = wrapped(report.verdict.state, 110, "", "") + wrapped(report.verdict.change, 110, "", "");
  if (extent == Extent::summary) print_table(cards_table(report), out);
  for (const Chart& chart : outline.picture) {
    if (!chart.bars.empty()) out += "\n" + bars_text(chart);
  }
  const auto print_findings = [&](const char* heading, const std::vector<Finding>& findings, bool with_costs) {
    if (findings.empty()) return;
    out += fmt::format("\n{}\n", heading);
    for (const Finding& finding : findings) {
      out += wrapped((with_costs ? reason_prefix(report, finding) : "") + finding.text, 110, sign(finding.severity),
                     "    ");
    }
  };
  print_findings("Reasons, by what they cost a rank (costs overlap)", outline.reasons, true);
  if (!outline.changes.empty()) out += "\nChanges that pay\n";
  for (const Table& table : outline.changes) print_table(table, out);
  if (!outline.tables.empty() || !outline.remarks.empty()) out += "\n── Details of the scaling\n";
  for (const auto& table : outline.tables) print_table(table, out);
  print_findings("About these figures", outline.remarks, false);
  for (std::size_t r = 0; r < outline.runs.size(); ++r) {
    out += fmt::format("\n── {}: {}\n", report.runs[r].name, run_summary(report.runs[r]));
    for (const auto& table : outline.runs[r].tables) print_table(table, out);
    print_findings("About this run", outline.runs[r].findings, false);
  }
  return printable_lines(out);
}

}  // namespace paceline::analysis
