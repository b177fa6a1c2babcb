// SPDX-License-Identifier: Apache-2.0
// The sections of a report. Each is one file in sections/ that holds its figures (keys of the JSON), its tables, its
// findings and its charts; whatever it has none of stays null. The renderings walk the lists in sections.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/report/report.h"
#include "analysis/run/finding.h"

namespace paceline::analysis {

using Json = nlohmann::ordered_json;

// A table with every figure as text; the terminal, Markdown and HTML draw it.
struct Table {
  std::string id;  // the class of the HTML table
  std::string title;
  std::vector<std::string> columns = {};
  std::vector<std::vector<std::string>> rows = {};
  std::size_t text_columns = 1;  // the first ones are text, the rest figures
  std::string note = {};         // how to read it; may be empty
  bool last_is_text = false;
  // Markdown and HTML are documents. A table for the terminal alone draws with characters.
  enum class Place : std::uint8_t { everywhere, terminal, documents };
  Place place = Place::everywhere;
  std::size_t sums = 0;  // the last rows are sums: they stay at the end when the reader sorts the table

  bool is_text(std::size_t column) const {
    return column < text_columns || (last_is_text && column + 1 == columns.size());
  }
};

// One bar of a chart, from one value to another.
struct Bar {
  std::string label;
  std::string kind;  // decides the colour: "total", "serial", the name of a phase, …
  double from = 0, to = 0;
  std::string text;  // its value for people
};

// A chart of the HTML report; page.js draws the data by its kind. Charts of bars are also drawn with characters on the
// terminal and in Markdown.
struct Chart {
  std::string title, kind;
  nlohmann::json data = nlohmann::json::object();
  std::vector<Bar> bars = {};
  double origin = 0;     // where the axis of the bars begins
  int height = 260;      // pixels
  bool wide = false;     // takes the whole width of the page
  bool picture = false;  // stands at the top of the report if it is about the focus (outline.h); else among the details
};

// Collects the findings about scaling. A table of runs may hold thousands of configurations: of each kind of sentence
// only the first are kept, equal sentences once, and finish() adds how many were left out.
class SentenceList;

// A section about one run.
struct RunSection {
  void (*findings)(const RunAnalysis&, std::vector<Finding>&) = nullptr;
  void (*tables)(const RunAnalysis&, std::vector<Table>&) = nullptr;  // a table without rows is not drawn
  void (*figures)(const RunAnalysis&, Json& run) = nullptr;
  void (*rank_figures)(const RunAnalysis&, std::size_t rank, Json& out) = nullptr;
  void (*charts)(const RunAnalysis&, std::vector<Chart>&) = nullptr;
  std::string_view kind = {};  // of its findings that do not set their own
};

// A section about several runs.
struct ScalingSection {
  void (*findings)(const Report&, SentenceList&) = nullptr;
  void (*tables)(const Report&, std::vector<Table>&) = nullptr;
  void (*figures)(const Report&, Json& scaling) = nullptr;
  void (*charts)(const Report&, std::vector<Chart>&) = nullptr;
};

// All sections, in the order in which they are printed.
std::span<const RunSection> run_sections();
std::span<const ScalingSection> scaling_sections();

// The tables and charts of all sections; those without rows are left out, and those of the other kind of rendering.
std::vector<Table> run_tables(const RunAnalysis& run, Table::Place place);
std::vector<Chart> run_charts(const RunAnalysis& run);
std::vector<Table> scaling_tables(const Report& report);
std::vector<Chart> scaling_charts(const Report& report);

// Fills the headline, the verdict and the findings of the report from everything else in it.
void write_findings(Report& report);

}  // namespace paceline::analysis
