// SPDX-License-Identifier: Apache-2.0
// Which rank is late in which iteration: a picture and its figures.
#include <algorithm>
#include <cmath>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace heat_map_section {

constexpr std::size_t most_columns = 200, most_rows = 64;  // of the picture
constexpr std::size_t most_table_columns = 10;
constexpr std::size_t most_text_columns = 60, most_text_rows = 16;

// One value in ns for each rank (row) and iteration (column), above 0 where the rank is late or slow.
struct Values {
  bool lateness = false;                   // else the time of the iteration, minus the median over the ranks
  std::vector<int> ranks = {};             // numbers of the rows
  std::vector<std::int64_t> numbers = {};  // of the iterations
  std::vector<double> ns = {};             // by row, then column

  double at(std::size_t row, std::size_t column) const { return ns[row * numbers.size() + column]; }
  const char* title() const { return lateness ? "Lateness of each rank" : "Iteration times beside the median rank's"; }
};

Values lateness_values(const RunAnalysis& run) {
  const LatenessTable& table = run.lateness_table;
  Values values{.lateness = true, .numbers = table.numbers};
  for (const RankSummary& rank : run.per_rank) values.ranks.push_back(rank.rank);
  for (std::size_t r = 0; r < table.ranks; ++r) {
    for (std::size_t i = 0; i < table.iterations(); ++i) values.ns.push_back(table.late_ns[i * table.ranks + r]);
  }
  return values;
}

// Without collectives: how long each rank's iteration was.
Values duration_values(const RunAnalysis& run) {
  const std::vector<std::int64_t>& all = run.iterations.numbers;
  Values values{.lateness = false,
                .numbers = {all.begin() + static_cast<std::ptrdiff_t>(run.iterations.warmup), all.end()}};
  const std::size_t columns = values.numbers.size();
  for (const RankSummary& rank : run.per_rank) {
    values.ranks.push_back(rank.rank);
    std::vector<double> row(columns);
    for (const Iteration& iteration : rank.iterations) {
      const auto at = std::ranges::lower_bound(values.numbers, iteration.number);
      if (at == values.numbers.end() || *at != iteration.number || !iteration.finished) continue;
      row[static_cast<std::size_t>(at - values.numbers.begin())] = static_cast<double>(iteration.duration_ns);
    }
    values.ns.insert(values.ns.end(), row.begin(), row.end());
  }
  const std::size_t rows = values.ranks.size();
  std::vector<double> column(rows);
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows; ++r) column[r] = values.ns[r * columns + c];
    std::ranges::sort(column);
    const double median = 0.5 * (column[(rows - 1) / 2] + column[rows / 2]);
    for (std::size_t r = 0; r < rows; ++r) values.ns[r * columns + c] -= median;
  }
  return values;
}

Values values_of(const RunAnalysis& run) {
  if (run.per_rank.size() < 2) return {};
  return run.lateness_table.iterations() > 0 ? lateness_values(run) : duration_values(run);
}

// Groups of neighbouring iterations, and of ranks. A cell is the mean over its iterations, and of its ranks the latest
// one, so that a single late rank stays visible.
struct Cells {
  std::size_t rows = 0, columns = 0, group = 1, rank_group = 1;
  std::vector<double> ns;  // by row, then column
};

Cells cells_of(const Values& values, std::size_t most_columns, std::size_t most_rows) {
  const std::size_t iterations = values.numbers.size(), ranks = values.ranks.size();
  Cells cells;
  cells.group = std::max<std::size_t>(1, (iterations + most_columns - 1) / most_columns);
  cells.rank_group = std::max<std::size_t>(1, (ranks + most_rows - 1) / most_rows);
  cells.columns = (iterations + cells.group - 1) / cells.group;
  cells.rows = (ranks + cells.rank_group - 1) / cells.rank_group;
  for (std::size_t row = 0; row < cells.rows; ++row) {
    for (std::size_t column = 0; column < cells.columns; ++column) {
      const std::size_t first = column * cells.group, last = std::min(first + cells.group, iterations);
      double latest = 0;
      bool any = false;
      for (std::size_t r = row * cells.rank_group; r < std::min((row + 1) * cells.rank_group, ranks); ++r) {
        double sum = 0;
        for (std::size_t i = first; i < last; ++i) sum += values.at(r, i);
        const double mean = sum / static_cast<double>(last - first);
        latest = any ? std::max(latest, mean) : mean;
        any = true;
      }
      cells.ns.push_back(latest);
    }
  }
  return cells;
}

// The size from which on a cell has its full colour: one cell in a hundred is above it.
double full_colour(const std::vector<double>& ns) {
  std::vector<double> sizes;
  for (const double value : ns) sizes.push_back(std::abs(value));
  if (sizes.empty()) return 0;
  const auto at = sizes.begin() + static_cast<std::ptrdiff_t>(0.99 * static_cast<double>(sizes.size() - 1));
  std::ranges::nth_element(sizes, at);
  return *at > 0 ? *at : *std::ranges::max_element(sizes);
}

std::string signed_duration(double ns) {
  return (ns < 0 ? "−" : "") + duration(static_cast<std::int64_t>(std::llround(std::abs(ns))));
}

// "12", or "12–19" where iterations share a cell.
std::string columns_label(const Values& values, const Cells& cells, std::size_t column) {
  const std::size_t first = column * cells.group, last = std::min(first + cells.group, values.numbers.size()) - 1;
  return first == last ? fmt::format("{}", values.numbers[first])
                       : fmt::format("{}–{}", values.numbers[first], values.numbers[last]);
}
std::string rows_label(const Values& values, const Cells& cells, std::size_t row) {
  const std::size_t first = row * cells.rank_group;
  const std::size_t last = std::min(first + cells.rank_group, values.ranks.size()) - 1;
  return first == last ? fmt::format("{}", values.ranks[first])
                       : fmt::format("{}–{}", values.ranks[first], values.ranks[last]);
}

std::string grouping_text(const Cells& cells) {
  std::string text;
  if (cells.group > 1) text += fmt::format(" A cell is the mean of {} iterations.", cells.group);
  if (cells.rank_group > 1) text += fmt::format(" Of {} neighbouring ranks it shows the latest.", cells.rank_group);
  return text;
}

// One character for each group of iterations: the later the rank, the darker.
void terminal_block(const RunAnalysis& run, const Values& values, std::vector<Table>& out) {
  if (run.lateness.late.empty() || values.ranks.size() > most_text_rows) return;
  const Cells cells = cells_of(values, most_text_columns, most_text_rows);
  const double full = full_colour(cells.ns);
  if (full <= 0) return;
  constexpr const char* shades[] = {" ", "░", "▒", "▓", "█"};
  Table table{.id = "lateness-block",
              .title = fmt::format("Lateness in iterations {} to {}: █ is {} or more{}", values.numbers.front(),
                                   values.numbers.back(), signed_duration(full),
                                   cells.group > 1 ? fmt::format(", mean of {} iterations", cells.group) : ""),
              .columns = {"rank", "lateness"},
              .text_columns = 2,
              .place = Table::Place::terminal};
  for (std::size_t row = 0; row < cells.rows; ++row) {
    std::string block;
    for (std::size_t column = 0; column < cells.columns; ++column) {
      const double late = std::clamp(cells.ns[row * cells.columns + column] / full, 0.0, 1.0);
      block += shades[std::llround(4 * late)];
    }
    table.rows.push_back({std::to_string(values.ranks[row]), block});
  }
  out.push_back(std::move(table));
}

// The figures of the picture, for readers who do not see it.
void figures_table(const Values& values, std::vector<Table>& out) {
  const Cells cells = cells_of(values, most_table_columns, most_rows);
  Table table{
      .id = "heat-map",
      .title = fmt::format("{} by iteration", values.title()),
      .columns = {"rank"},
      .note = values.lateness
                  ? "Arrival at the last collective that was awaited in an iteration, without the time in "
                    "which the rank was blocked itself, minus the median over the ranks. The warm-up is left out."
                  : "Time of the rank's iteration minus the median over the ranks. The warm-up is "
                    "left out.",
      .place = Table::Place::documents};
  table.note += grouping_text(cells);
  for (std::size_t column = 0; column < cells.columns; ++column) {
    table.columns.push_back(columns_label(values, cells, column));
  }
  for (std::size_t row = 0; row < cells.rows; ++row) {
    auto& line = table.rows.emplace_back(std::vector<std::string>{rows_label(values, cells, row)});
    for (std::size_t column = 0; column < cells.columns; ++column) {
      line.push_back(signed_duration(cells.ns[row * cells.columns + column]));
    }
  }
  out.push_back(std::move(table));
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  const Values values = values_of(run);
  if (values.numbers.empty()) return;
  if (values.lateness) terminal_block(run, values, out);
  figures_table(values, out);
}

// At most 200 groups of iterations, and every rank.
void figures(const RunAnalysis& run, Json& out) {
  const Values values = values_of(run);
  if (values.numbers.empty()) return;
  const Cells cells = cells_of(values, most_columns, values.ranks.size());
  Json& map = out["heat_map"] = {{"figure", values.lateness ? "lateness" : "iteration time"},
                                 {"iterations_per_column", cells.group},
                                 {"first_iterations", Json::array()},
                                 {"ranks", values.ranks},
                                 {"ns", Json::array()}};
  for (std::size_t column = 0; column < cells.columns; ++column) {
    map["first_iterations"].push_back(values.numbers[column * cells.group]);
  }
  for (std::size_t row = 0; row < cells.rows; ++row) {
    const auto begin = cells.ns.begin() + static_cast<std::ptrdiff_t>(row * cells.columns);
    map["ns"].push_back(std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(cells.columns)));
  }
}

void charts(const RunAnalysis& run, std::vector<Chart>& out) {
  const Values values = values_of(run);
  if (values.numbers.size() < 3) return;
  const Cells cells = cells_of(values, most_columns, most_rows);
  const double full = full_colour(cells.ns);
  if (full <= 0) return;
  nlohmann::json list = nlohmann::json::array(), columns = nlohmann::json::array(), rows = nlohmann::json::array();
  for (std::size_t column = 0; column < cells.columns; ++column)
    columns.push_back(columns_label(values, cells, column));
  for (std::size_t row = 0; row < cells.rows; ++row) {
    rows.push_back(rows_label(values, cells, row));
    for (std::size_t column = 0; column < cells.columns; ++column) {
      const double ns = cells.ns[row * cells.columns + column];
      list.push_back({{"x", column}, {"y", row}, {"v", ns}, {"text", signed_duration(ns)}});
    }
  }
  std::string title = fmt::format("{} in each iteration", values.title());
  if (const std::string grouping = grouping_text(cells); !grouping.empty()) title += "." + grouping;
  out.push_back({.title = std::move(title),
                 .kind = "heat",
                 .data = {{"cells", list},
                          {"columns", columns},
                          {"rows", rows},
                          {"x", "iteration"},
                          {"y", "rank"},
                          {"full", full},
                          {"full_text", signed_duration(full)},
                          {"signed", values.lateness ? "early" : "faster"},
                          {"above", values.lateness ? "late" : "slower"}},
                 .height = 110 + std::min(18 * static_cast<int>(cells.rows), 560),
                 .wide = true});
}

}  // namespace heat_map_section

RunSection sections::heat_map() {
  using namespace heat_map_section;
  return {.tables = tables, .figures = figures, .charts = charts};
}

}  // namespace paceline::analysis
