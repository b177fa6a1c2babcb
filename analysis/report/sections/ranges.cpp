// SPDX-License-Identifier: Apache-2.0
// How long ranges, layers and calls took, and the device time of what was launched from inside them.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/text/labels.h"

namespace paceline::analysis {
namespace ranges_section {

constexpr std::size_t most_shown = 15, longest_name = 48, longest_domain = 32;

// "paceline.trainer (layer)"
std::string domain_cell(const RangeStatistics& range) {
  std::string text = range.domain;
  if (!range.category.empty()) text += text.empty() ? range.category : " (" + range.category + ")";
  return text.empty() ? no_value : label(text, longest_domain);
}

// "other names (9,800,000)"
std::string name_cell(const RangeStatistics& range) {
  if (range.others == 0) return label(range.name, longest_name);
  return fmt::format("{} ({})", range.name, count(static_cast<double>(range.others)));
}

using RangeName = std::tuple<std::string_view, std::string_view, std::string_view, bool>;
RangeName name_of(const RangeStatistics& range) { return {range.domain, range.category, range.name, range.others > 0}; }

// "5.20 s (rank 1)": the rank in which the row takes longest.
std::string longest_rank(const RunAnalysis& run, const RangeStatistics& row) {
  const RankSummary* longest = nullptr;
  std::int64_t most_ns = -1;
  for (const RankSummary& rank : run.per_rank) {
    const auto found = std::ranges::find(rank.ranges, name_of(row), name_of);
    if (found == rank.ranges.end() || found->durations.sum_ns() <= most_ns) continue;
    longest = &rank;
    most_ns = found->durations.sum_ns();
  }
  return longest == nullptr ? no_value : fmt::format("{} (rank {})", duration(most_ns), longest->rank);
}

std::string rounded_duration(double ns) { return duration(static_cast<std::int64_t>(std::llround(ns))); }

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  Table table{.id = "ranges",
              .title = "Time in ranges and calls",
              .columns = {"range or call", "domain", "calls", "total", "minimum", "median", "maximum", "σ"},
              .text_columns = 2,
              .note =
                  "Over all ranks and threads. A range that lies inside another one counts in both. σ is the "
                  "standard deviation of the calls. Medians of more than 1,024 calls are within 1 %."};
  const bool several = run.per_rank.size() > 1;
  const bool on_device = std::ranges::any_of(run.ranges, [](const auto& range) { return range.device.operations > 0; });
  if (several) table.columns.emplace_back("largest total");
  if (on_device) {
    table.columns.insert(table.columns.end(), {"device work", "projected"});
    table.note +=
        " Device work is the time of the kernels and copies launched from inside; projected is from the "
        "start of the first to the end of the last one of each call.";
  }
  const auto add = [&](const RangeStatistics& range) {
    const DurationSketch& durations = range.durations;
    auto& row = table.rows.emplace_back(std::vector<std::string>{
        name_cell(range), domain_cell(range), count(static_cast<double>(durations.count())),
        duration(durations.sum_ns()), duration(durations.minimum_ns()), rounded_duration(durations.quantile_ns(0.5)),
        duration(durations.maximum_ns()), rounded_duration(durations.stddev_ns())});
    if (several) row.push_back(longest_rank(run, range));
    if (!on_device) return;
    const bool known = range.device.operations > 0;
    row.push_back(known ? duration(range.device.work_ns) : no_value);
    row.push_back(known ? duration(range.device.projected_ns) : no_value);
  };
  for (std::size_t i = 0; i < std::min(most_shown, run.ranges.size()); ++i) add(run.ranges[i]);
  if (run.ranges.size() > most_shown) {
    const bool cut = run.ranges.back().others > 0;
    table.title += fmt::format(": the {} largest of {}{}", most_shown, cut && several ? "at least " : "",
                               count(static_cast<double>(names_in(run.ranges))));
    if (cut) {
      add(run.ranges.back());
      table.note += fmt::format(
          " The report has figures for the {} names with the largest totals, and the row \"other names\" for the rest.",
          count(static_cast<double>(run.ranges.size() - 1)));
    }
    table.note += fmt::format(" --format json has {}, for each rank.", cut ? "these rows" : "all of them");
  }
  out.push_back(std::move(table));
}

Json ranges_json(const std::vector<RangeStatistics>& ranges) {
  Json out = Json::array();
  for (const RangeStatistics& range : ranges) {
    const DurationSketch& durations = range.durations;
    Json entry = {{"name", range.name}};
    if (!range.domain.empty()) entry["domain"] = range.domain;
    if (!range.category.empty()) entry["category"] = range.category;
    if (range.others > 0) entry["other_names"] = range.others;
    entry["calls"] = durations.count();
    entry["total_ns"] = durations.sum_ns();
    entry["min_ns"] = durations.minimum_ns();
    entry["median_ns"] = durations.quantile_ns(0.5);
    entry["max_ns"] = durations.maximum_ns();
    entry["stddev_ns"] = durations.stddev_ns();
    if (range.device.operations > 0) {
      entry["device_operations"] = range.device.operations;
      entry["device_ns"] = range.device.work_ns;
      entry["projected_ns"] = range.device.projected_ns;
    }
    out.push_back(std::move(entry));
  }
  return out;
}

void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  if (!run.per_rank[r].ranges.empty()) out["ranges"] = ranges_json(run.per_rank[r].ranges);
}

}  // namespace ranges_section

RunSection sections::ranges() {
  using namespace ranges_section;
  return {.tables = tables, .rank_figures = rank_figures};
}

}  // namespace paceline::analysis
