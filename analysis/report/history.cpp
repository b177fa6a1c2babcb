// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "analysis/report/renderings/html_page.h"
#include "analysis/report/renderings/text_parts.h"
#include "analysis/text/labels.h"
#include "analysis/text/numbers.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace history_parts {

constexpr const char* none = "–";
using Parts = std::vector<std::pair<std::string, double>>;

// An object of numbers in ns, each multiplied by `factor`.
Parts parts_of(const Json& object, double factor) {
  Parts parts;
  for (const auto& [key, ns] : object.items()) {
    std::string name = key;
    std::ranges::replace(name, '_', ' ');
    parts.emplace_back(name, factor * ns.get<double>());
  }
  return parts;
}

HistoryRow row_of(const Json& run) {
  const Json& iterations = run.at("iterations");
  HistoryRow row{.run = std::filesystem::path(run.at("path").get<std::string>()).lexically_normal().filename().string(),
                 .recorded = run.value("recorded", ""),
                 .ranks = run.at("ranks").get<int>(),
                 .step_ms = 1e-6 * iterations.at("steady_median_ns").get<double>(),
                 .p95_ms = 1e-6 * iterations.at("p95_ns").get<double>()};
  if (iterations.contains("steady_images_per_s")) row.images_per_s = iterations["steady_images_per_s"].get<double>();
  if (run.contains("efficiencies")) row.useful = run["efficiencies"].at("parallel").get<double>();
  if (iterations.contains("phases_ns")) row.phases_ms = parts_of(iterations["phases_ns"], 1e-6);
  if (run.contains("causes")) {
    row.causes_percent = parts_of(run["causes"].at("lost_ns"), 100 / run.at("wall_ns").get<double>());
  }
  for (const auto& [key, value] : run.at("config").items()) {
    row.config[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return row;
}

// "2026-11-22 10:04", with the seconds where two runs began in one minute.
std::string date_text(const History& history, const std::string& recorded) {
  const auto same_minute = [](const HistoryRow& a, const HistoryRow& b) {
    return a.recorded.substr(0, 16) == b.recorded.substr(0, 16);
  };
  const bool seconds = std::ranges::adjacent_find(history.rows, same_minute) != history.rows.end();
  std::string text = recorded.substr(0, seconds ? 19 : 16);
  std::ranges::replace(text, 'T', ' ');
  return text;
}

// "abc", "abc (2)"
void number_equal_labels(std::vector<HistoryRow>& rows) {
  std::map<std::string, int> seen;
  for (HistoryRow& row : rows) {
    if (const int number = ++seen[row.label]; number > 1) row.label += fmt::format(" ({})", number);
  }
}

std::string ms(double value) { return seconds(1e-3 * value); }

std::string change_text(const History& history, std::size_t i) {
  return i == 0 ? none : percent_change(history.rows[i].step_ms / history.rows[i - 1].step_ms);
}

// "communication 64.7 %"
std::string largest_part(const HistoryRow& row) {
  const auto largest = std::ranges::max_element(row.phases_ms, {}, &Parts::value_type::second);
  double sum = 0;
  for (const auto& [name, part] : row.phases_ms) sum += part;
  return largest == row.phases_ms.end() || sum <= 0 ? none : largest->first + " " + percent(largest->second / sum);
}

Table table_of(const History& history) {
  const bool names_runs = history.by != "run";
  Table table{.id = "history",
              .title = "The runs",
              .columns = {history.by},
              .text_columns = names_runs ? 2U : 1U,
              .note =
                  "A step is the median of the iterations after the warm-up. The change is against the run before, "
                  "and is not tested: `paceline compare` tells whether two runs differ beyond chance.",
              .last_is_text = true};
  if (names_runs) table.columns.emplace_back("run");
  for (const char* title : {"ranks", "step", "change", "95th percentile", "images/s", "useful work", "largest part"}) {
    table.columns.emplace_back(title);
  }
  for (std::size_t i = 0; i < history.rows.size(); ++i) {
    const HistoryRow& row = history.rows[i];
    auto& cells = table.rows.emplace_back(std::vector<std::string>{row.label});
    if (names_runs) cells.push_back(row.run);
    for (std::string text : {std::to_string(row.ranks), ms(row.step_ms), change_text(history, i), ms(row.p95_ms),
                             row.images_per_s ? fixed(*row.images_per_s, 1) : none,
                             row.useful ? percent(*row.useful) : none, largest_part(row)}) {
      cells.push_back(std::move(text));
    }
  }
  return table;
}

// "The last of 12 runs takes 81.6 ms for a step (median), +3.1 % against the run before it; the fastest one is abc
// (78.0 ms)."
std::string headline_of(const History& history) {
  const auto& rows = history.rows;
  const HistoryRow& last = rows.back();
  if (rows.size() == 1) return fmt::format("One run: a step takes {} (median).", ms(last.step_ms));
  const HistoryRow& fastest = *std::ranges::min_element(rows, {}, &HistoryRow::step_ms);
  return fmt::format("The last of {} runs, {}, takes {} for a step (median), {} against the run before it; {}.",
                     rows.size(), last.label, ms(last.step_ms), change_text(history, rows.size() - 1),
                     &fastest == &last ? "no run was faster"
                                       : fmt::format("the fastest one is {} ({})", fastest.label, ms(fastest.step_ms)));
}

Json labels_of(const History& history) {
  Json labels = Json::array();
  for (const HistoryRow& row : history.rows) labels.push_back(row.label);
  return labels;
}

struct Line {
  const char* label;
  std::optional<double> (*of)(const HistoryRow&);
};

// Left out where no run has a value.
void add_lines(const History& history, const char* title, const char* unit, std::initializer_list<Line> lines,
               std::vector<Chart>& out) {
  Json series = Json::array();
  for (const Line& line : lines) {
    Json values = Json::array();
    for (const HistoryRow& row : history.rows) {
      const auto value = line.of(row);
      values.push_back(value ? Json(*value) : Json());
    }
    if (std::ranges::all_of(values, [](const Json& value) { return value.is_null(); })) continue;
    series.push_back({{"label", line.label}, {"values", std::move(values)}});
  }
  if (series.empty()) return;
  out.push_back({.title = title,
                 .kind = "history",
                 .data = {{"labels", labels_of(history)}, {"series", std::move(series)}, {"unit", unit}},
                 .height = 240,
                 .wide = true});
}

// Bars of the parts of a run, one above the other; left out where no run has any.
void add_parts(const History& history, const char* title, const char* unit, Parts HistoryRow::*parts,
               std::vector<Chart>& out) {
  std::vector<std::string> names;  // in the order of their first run
  for (const HistoryRow& row : history.rows) {
    for (const auto& [name, part] : row.*parts) {
      if (part > 0 && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  if (names.empty()) return;
  Json phases = Json::array();
  for (const std::string& name : names) {
    Json values = Json::array();
    for (const HistoryRow& row : history.rows) {
      const auto found = std::ranges::find(row.*parts, name, &Parts::value_type::first);
      values.push_back(found == (row.*parts).end() ? 0 : found->second);
    }
    phases.push_back({{"name", name}, {"ms", std::move(values)}});
  }
  out.push_back(
      {.title = title,
       .kind = "iterations",
       .data = {{"x", history.by}, {"numbers", labels_of(history)}, {"phases", std::move(phases)}, {"unit", unit}},
       .height = 260,
       .wide = true});
}

std::vector<Chart> charts_of(const History& history) {
  std::vector<Chart> charts;
  add_lines(history, "Time of a step, ms", "ms",
            {{"median", [](const HistoryRow& row) { return std::optional(row.step_ms); }},
             {"95th percentile", [](const HistoryRow& row) { return std::optional(row.p95_ms); }}},
            charts);
  add_lines(history, "Useful work, % of the iterations", "%",
            {{"useful work",
              [](const HistoryRow& row) { return row.useful ? std::optional(100 * *row.useful) : std::nullopt; }}},
            charts);
  add_parts(history, "Where the time of a step goes, ms, mean over the ranks", "ms", &HistoryRow::phases_ms, charts);
  add_parts(history, "What a rank lost, by cause, % of the wall time", "%", &HistoryRow::causes_percent, charts);
  return charts;
}

class HistoryPage : HtmlPage {
 public:
  explicit HistoryPage(const History& history) {
    defines_ = false;
    begin("Paceline history");
    out_ +=
        fmt::format("<main>\n<header>\n<p class=\"brand\">Paceline history</p>\n<h1>{}</h1>\n</header>\n<section>\n",
                    sentence(headline_of(history)));
    print(charts_of(history));
    out_ += "</section>\n<section>\n";
    print(table_of(history), true);
    out_ += "</section>\n";
  }
  std::string write() { return end(); }
};

}  // namespace history_parts

std::vector<HistoryRow> history_rows(const Json& report, const std::string& file, std::vector<std::string>& without) {
  std::vector<HistoryRow> rows;
  try {
    for (const Json& run : report.at("runs")) {
      if (run.contains("iterations")) {
        rows.push_back(history_parts::row_of(run));
      } else {
        without.push_back(run.at("path").get<std::string>());
      }
    }
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}: not the output of `paceline report --format json`: {}", file, error.what()));
  }
  return rows;
}

History history_of(std::vector<HistoryRow> rows, const std::string& by) {
  if (rows.empty()) throw Error("no run has iterations: name the training steps, so that their time is known");
  const auto has_date = [](const HistoryRow& row) { return !row.recorded.empty(); };
  const bool dated = std::ranges::all_of(rows, has_date);
  if (dated) std::ranges::stable_sort(rows, {}, &HistoryRow::recorded);
  const auto has = [&](const std::string& key) {
    return std::ranges::any_of(rows, [&](const HistoryRow& row) { return row.config.contains(key); });
  };
  if (!by.empty() && !has(by)) {
    throw Error(fmt::format("--by {0}: no run has it; record with `--set {0}=VALUE`", by));
  }
  const std::string key = !by.empty() ? by : has("commit") ? "commit" : dated ? "recorded" : "run";
  History history{.rows = std::move(rows), .by = key};
  for (HistoryRow& row : history.rows) {
    const auto found = row.config.find(history.by);
    row.label = printable(history.by == "recorded"    ? history_parts::date_text(history, row.recorded)
                          : history.by == "run"       ? row.run
                          : found == row.config.end() ? history_parts::none
                                                      : found->second);
  }
  history_parts::number_equal_labels(history.rows);
  return history;
}

std::string render_history_text(const History& history) {
  std::string out = wrapped(history_parts::headline_of(history), 110, "", "");
  print_table(history_parts::table_of(history), out);
  return printable_lines(out);
}

std::string render_history_markdown(const History& history) {
  std::string out = fmt::format("# Paceline history\n\n{}\n", markdown_escaped(history_parts::headline_of(history)));
  print_markdown_tables({history_parts::table_of(history)}, out);
  return printable_lines(out);
}

std::string render_history_html(const History& history) { return history_parts::HistoryPage(history).write(); }

}  // namespace paceline::analysis
