// SPDX-License-Identifier: Apache-2.0
// Runs of equal rank counts and equal work side by side.
#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace comparisons_section {

std::string values_text(const std::vector<Difference>& differences, bool to) {
  std::vector<std::string> values;
  for (const auto& d : differences) {
    const std::string& value = to ? d.to : d.from;
    values.push_back(fmt::format("{} {}", d.column, value.empty() ? "not given" : value));
  }
  return list_text(values);
}

void findings(const Report& report, SentenceList& out) {
  constexpr std::size_t most_named = 8;
  const Scaling& scaling = report.scaling;
  for (const auto& comparison : scaling.comparisons) {
    out.say("comparison", Severity::info, comparison_text(scaling, comparison));
  }
  if (scaling.averaged_labels.empty()) return;
  std::vector<std::string> labels = scaling.averaged_labels;
  if (labels.size() > most_named) labels.resize(most_named);
  out.say("labels", Severity::info,
          fmt::format("Runs that differ only in {} count as repeats, and the report averages them. `--series COLUMN` "
                      "separates them.",
                      list_text(labels)));
}

void tables(const Report& report, std::vector<Table>& out) {
  Table table{.id = "comparisons",
              .title = "Equal rank counts side by side",
              .columns = {"ranks", "time of the first", "time of the second", "ratio of speeds", "first → second"},
              .text_columns = 0,
              .note =
                  "The ratio is the time of the first divided by the time of the second. Above 1, the second is "
                  "faster. Brackets hold the 95 % interval.",
              .last_is_text = true};
  const auto& points = report.scaling.points;
  for (const auto& comparison : report.scaling.comparisons) {
    const ScalingPoint &first = points[comparison.reference], &second = points[comparison.other];
    table.rows.push_back({std::to_string(first.ranks), seconds(first.seconds), seconds(second.seconds),
                          with_range(comparison.ratio, comparison.ci95, [](double r) { return fixed(r, 3); }),
                          differences_text(comparison.differences)});
  }
  out.push_back(std::move(table));
}

void figures(const Report& report, Json& out) {
  const auto& points = report.scaling.points;
  const auto label = [&](std::size_t point) { return report.scaling_runs[points[point].runs.front()].label; };
  for (const auto& comparison : report.scaling.comparisons) {
    Json entry = {{"ranks", points[comparison.reference].ranks},
                  {"reference", label(comparison.reference)},
                  {"run", label(comparison.other)},
                  {"differences", differences_json(comparison.differences)},
                  {"ratio", comparison.ratio}};
    set(entry, "ratio_ci95", comparison.ci95);
    set_verdict(entry, comparison.verdict);
    out["comparisons"].push_back(std::move(entry));
  }
}

}  // namespace comparisons_section

ScalingSection sections::comparisons() {
  using namespace comparisons_section;
  return {.findings = findings, .tables = tables, .figures = figures};
}

std::string comparison_text(const Scaling& scaling, const Comparison& comparison) {
  using comparisons_section::values_text;
  const ScalingPoint &a = scaling.points[comparison.reference], &b = scaling.points[comparison.other];
  const std::string text = fmt::format("On {} at {}, {} takes {} and {} takes {}",
                                       plural(static_cast<std::size_t>(a.ranks), "rank", "ranks"), work_text(a),
                                       values_text(comparison.differences, true), seconds(b.seconds),
                                       values_text(comparison.differences, false), seconds(a.seconds));
  const auto ratio = [&](bool inverse) {
    const auto& ci = comparison.ci95;
    const double value = inverse ? 1 / comparison.ratio : comparison.ratio;
    if (!ci) return fixed(value, 3);
    return with_interval(fixed(value, 3), inverse ? Interval{1 / ci->high, 1 / ci->low} : *ci, 3);
  };
  switch (comparison.verdict) {
    case Verdict::faster:
      return text + fmt::format(": the first is {} times as fast.", ratio(false));
    case Verdict::slower:
      return text + fmt::format(": the second is {} times as fast.", ratio(true));
    case Verdict::undecided:
      return text + fmt::format(": the ratio of their speeds is {}, which shows no difference.", ratio(false));
    case Verdict::unknown:
      break;
  }
  return text + fmt::format(": the ratio of their speeds is {}, which may be noise.", ratio(false));
}

}  // namespace paceline::analysis
