// SPDX-License-Identifier: Apache-2.0
// Weak scaling: the images grow with the ranks.
#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace weak_scaling_section {

std::string point_text(const Scaling& scaling, const ScalingPoint& point) {
  const ScalingPoint& one = scaling.points[*point.weak_baseline];
  const auto& ci95 = point.weak_efficiency_ci95;
  std::string text = fmt::format(
      "Weak scaling: {} ranks train {} images in {} and 1 rank trains {} in {}: weak efficiency {}, scaled speed-up "
      "{}",
      point.ranks, count(point.images), seconds(point.seconds), count(one.images), seconds(one.seconds),
      ci95 ? fmt::format("{} (95 %: {}–{})", percent(*point.weak_efficiency), percent(ci95->low), percent(ci95->high))
           : percent(*point.weak_efficiency),
      with_interval(fixed(*point.scaled_speedup, 3), point.scaled_speedup_ci95, 3));
  if (!point.differences.empty())
    text += fmt::format("; the two runs differ in {}", differences_text(point.differences));
  return text + ".";
}

void findings(const Report& report, SentenceList& out) {
  const Scaling& scaling = report.scaling;
  for (const auto& point : scaling.points) {
    if (point.scaled_speedup) out.say("weak", Severity::info, point_text(scaling, point));
  }
  for (const auto& fit : scaling.weak) {
    if (fit.misfit) continue;
    out.say(
        "gustafson", Severity::info,
        fmt::format("Gustafson's law through {} ranks: the share s = {} of the time on N ranks is serial.{}",
                    rank_counts_text(scaling, fit.points), with_interval(fixed(fit.serial_fraction, 4), fit.ci95, 4),
                    fit.points.size() == 2 ? " Two rank counts determine the law, so nothing tests it." : ""));
  }
}

void tables(const Report& report, std::vector<Table>& out) {
  Table table{.id = "weak-scaling",
              .title = "Weak scaling: equal images per rank",
              .columns = {"run", "ranks", "images", "time", "efficiency T(1)/T(N)", "scaled speed-up"},
              .note = "The scaled speed-up is N × T(1)/T(N). Brackets hold the 95 % interval."};
  for (const auto& point : report.scaling.points) {
    if (!point.scaled_speedup) continue;
    table.rows.push_back(
        {point_label(report, point), std::to_string(point.ranks), count(point.images), seconds(point.seconds),
         with_range(point.weak_efficiency, point.weak_efficiency_ci95, percent),
         with_range(point.scaled_speedup, point.scaled_speedup_ci95, [](double s) { return fixed(s, 3); })});
  }
  out.push_back(std::move(table));
}

void figures(const Report& report, Json& out) {
  for (const auto& fit : report.scaling.weak) {
    Json law = {{"serial_fraction", fit.serial_fraction}, {"ranks", rank_counts_json(report.scaling, fit.points)}};
    set(law, "ci95", fit.ci95);
    if (fit.misfit) law["refused"] = true;
    out["gustafson"].push_back(std::move(law));
  }
}

}  // namespace weak_scaling_section

ScalingSection sections::weak_scaling() {
  using namespace weak_scaling_section;
  return {.findings = findings, .tables = tables, .figures = figures};
}

}  // namespace paceline::analysis
