// SPDX-License-Identifier: Apache-2.0
// The lists of sections, and what every rendering needs of all of them.
#include "analysis/report/sections.h"

#include <algorithm>

#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {

std::span<const RunSection> run_sections() {
  const auto of = [](std::string_view kind, RunSection section) {
    section.kind = kind;
    return section;
  };
  static const RunSection all[] = {sections::main_figures(),
                                   of("breakdown", sections::breakdown()),
                                   of("iterations", sections::iterations()),
                                   of("collectives", sections::collectives()),
                                   of("waiting", sections::waiting()),
                                   of("interlude", sections::interludes()),
                                   of("causes", sections::causes()),
                                   of("link", sections::links()),
                                   sections::heat_map(),
                                   of("messages", sections::messages()),
                                   of("efficiency", sections::efficiencies()),
                                   of("critical path", sections::critical_path()),
                                   sections::overlap(),
                                   of("pipeline", sections::pipeline()),
                                   of("exchanges", sections::exchanges()),
                                   sections::gpu(),
                                   sections::layers(),
                                   sections::ranges(),
                                   of("machine", sections::machine()),
                                   of("accuracy", sections::accuracy()),
                                   of("end", sections::hangs()),
                                   of("losses", sections::losses()),
                                   of("prediction", sections::what_if())};
  return all;
}

std::span<const ScalingSection> scaling_sections() {
  static const ScalingSection all[] = {sections::speed_up(),   sections::weak_scaling(), sections::comparisons(),
                                       sections::lost_time(),  sections::waterfall(),    sections::serial_share(),
                                       sections::time_model(), sections::law_choice(),   sections::accuracy_lost(),
                                       sections::noise()};
  return all;
}

namespace {

// What one function of all sections adds up to.
template <class Item, class Section, class Subject>
std::vector<Item> collect_from(std::span<const Section> sections, const Subject& subject,
                               void (*Section::*function)(const Subject&, std::vector<Item>&)) {
  std::vector<Item> items;
  for (const Section& section : sections) {
    if (section.*function != nullptr) (section.*function)(subject, items);
  }
  return items;
}

std::vector<Table> filled(std::vector<Table> tables) {
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace

std::vector<Table> run_tables(const RunAnalysis& run, Table::Place place) {
  auto tables = filled(collect_from<Table>(run_sections(), run, &RunSection::tables));
  std::erase_if(tables,
                [&](const Table& table) { return table.place != Table::Place::everywhere && table.place != place; });
  return tables;
}

std::vector<Chart> run_charts(const RunAnalysis& run) {
  return collect_from<Chart>(run_sections(), run, &RunSection::charts);
}

std::vector<Table> scaling_tables(const Report& report) {
  auto tables = filled(collect_from<Table>(scaling_sections(), report, &ScalingSection::tables));
  std::ranges::for_each(tables, limit_rows);
  return tables;
}

std::vector<Chart> scaling_charts(const Report& report) {
  return collect_from<Chart>(scaling_sections(), report, &ScalingSection::charts);
}

void write_findings(Report& report) {
  report.headline = headline_of(report);
  report.verdict = verdict_of(report);
  report.findings.clear();
  SentenceList scaling(report.findings);
  for (const ScalingSection& section : scaling_sections()) {
    if (section.findings != nullptr) section.findings(report, scaling);
  }
  scaling.finish();
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    for (const RunSection& section : run_sections()) {
      const std::size_t first = report.findings.size();
      if (section.findings != nullptr) section.findings(report.runs[r], report.findings);
      for (Finding& finding : std::span(report.findings).subspan(first)) {
        if (report.runs.size() > 1) finding.run = r;
        if (finding.kind.empty()) finding.kind = section.kind;
      }
    }
  }
  std::ranges::stable_partition(report.findings,
                                [](const Finding& finding) { return finding.severity == Severity::problem; });
}

void limit_rows(Table& table) {
  if (table.rows.size() <= most_rows_printed) return;
  const std::size_t left_out = table.rows.size() - most_rows_printed;
  table.rows.resize(most_rows_printed);
  table.rows.push_back({fmt::format("… and {} more", count(static_cast<double>(left_out)))});
  table.rows.back().resize(table.columns.size());
  if (!table.note.empty()) table.note += ' ';
  table.note +=
      fmt::format("{} left out here; --format json and csv have all of them.", plural(left_out, "row is", "rows are"));
}

}  // namespace paceline::analysis
