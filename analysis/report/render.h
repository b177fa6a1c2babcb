// SPDX-License-Identifier: Apache-2.0
// The renderings of a report. Each returns the whole document, ending in a newline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "analysis/report/report.h"

namespace paceline::analysis {

// The schema paceline.report/1; what does not apply is absent. Everything else renders the same figures.
nlohmann::ordered_json report_json(const Report& report);

// A summary has the verdict, the main figures, what costs most and the best changes: one page, or the comment on a
// change.
enum class Extent : std::uint8_t { whole, summary };

std::string render_json(const Report& report);                                     // report_json() as text
std::string render_text(const Report& report, Extent extent = Extent::whole);      // for the terminal
std::string render_markdown(const Report& report, Extent extent = Extent::whole);  // for an issue or a wiki
std::string render_csv(const Report& report);  // one row a run and rank, and one a table's row
std::string render_html(const Report& report,
                        Extent extent = Extent::whole);  // one file, nothing loaded from elsewhere

// A table as a file.
struct CsvFile {
  std::string name;  // "report-ranges.csv"
  std::string text;  // with a header line
};
// The tables of the runs as CSV, beside render_csv(), complete: ranges, collectives, messages and iterations. One
// without rows is left out.
std::vector<CsvFile> render_csv_tables(const Report& report);

}  // namespace paceline::analysis
