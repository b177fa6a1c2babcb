// The report's tables, made once with every figure as text; the terminal, Markdown and HTML draw them.
#pragma once

#include <string>
#include <vector>

#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

struct Table {
  std::string id;  // "scaling", "phases": what HTML puts a chart beside
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::size_t text_columns = 1;  // the first ones are text, the rest figures
  std::string note = {};         // what a reader must know to read it; may be empty
  bool last_is_text = false;

  bool is_text(std::size_t column) const {
    return column < text_columns || (last_is_text && column + 1 == columns.size());
  }
};

// Tables that would be empty are left out.
std::vector<Table> scaling_tables(const Report& report);
std::vector<Table> run_tables(const RunReport& run);

// What a run was, in one line: "ResNet-18 …, 2 ranks on alice, batch 32 per rank".
std::string run_summary(const RunReport& run);

}  // namespace paceline::analysis
