// SPDX-License-Identifier: Apache-2.0
// From the ideal speed-up N to the measured one, cause by cause. The steps add up exactly.
//
// With W the mean wall time over the ranks, W(N) = W(1)/N + serial + communication + slower parallel work (LostTime).
// What is lost without a CPU is a step of its own, as in the table of causes (LostTimeParts). So N − W(1)/W(N) is the
// sum of N × seconds/W(N) over these causes. The speed-up itself is measured by the time of the whole job, that of the
// last rank, which the last step accounts for.
#include <algorithm>
#include <cmath>

#include "analysis/report/changes.h"
#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace waterfall_section {

struct Step {
  const char *key, *name;
  double change = 0;  // of the speed-up; below 0: lost
};

struct Waterfall {
  int ranks = 1;
  double measured = 0;
  std::vector<Step> steps;  // ranks + their sum = measured
};

Waterfall waterfall_of(const Report& report, const LostTime& lost) {
  const double n = lost.ranks, per_second = lost.actual_s > 0 ? n / lost.actual_s : 0;
  const LostTimeParts parts = lost_parts(report, lost);
  Waterfall out{.ranks = lost.ranks,
                .measured = report.scaling.points[lost.point].speedup.value_or(lost.ideal_s * per_second),
                .steps = {{"serial", "serial work", -parts.serial_s * per_second},
                          {"transfer", "communication: transfer", -parts.transfer_s * per_second},
                          {"waiting", "communication: waiting", -parts.waiting_s * per_second},
                          {"parallel", "slower parallel work", -parts.slower_work_s * per_second}}};
  const auto lacked_cpus = [&](const LostTime& one) { return lost_parts(report, one).no_cpu_s > 0; };
  if (std::ranges::any_of(report.lost_time, lacked_cpus)) {  // all rows of the table have the same columns
    out.steps.push_back({"no_cpu", "threads without a CPU", -parts.no_cpu_s * per_second});
  }
  double reached = n;
  for (const Step& step : out.steps) reached += step.change;
  out.steps.push_back({"last_rank", "last rank's end", out.measured - reached});
  return out;
}

// "+0.120", "−1.340"
std::string signed_number(double value) { return (value < 0 ? "−" : "+") + fixed(std::abs(value), 3); }

void tables(const Report& report, std::vector<Table>& out) {
  Table table{.id = "waterfall",
              .title = "From the ideal to the measured speed-up",
              .columns = {"ranks", "ideal"},
              .text_columns = 0,
              .note =
                  "Ideal plus all changes is the measured speed-up. A change is N × the seconds of its cause ÷ the "
                  "wall time, as means over ranks. Last rank's end: the speed-up is that of the whole job, which "
                  "lasts until the last rank ends. A change above 0 is speed that was won."};
  for (const LostTime& lost : report.lost_time) {
    const Waterfall waterfall = waterfall_of(report, lost);
    auto& row =
        table.rows.emplace_back(std::vector<std::string>{std::to_string(lost.ranks), std::to_string(lost.ranks)});
    for (const Step& step : waterfall.steps) {
      if (table.rows.size() == 1) table.columns.emplace_back(step.name);
      row.push_back(signed_number(step.change));
    }
    row.push_back(fixed(waterfall.measured, 3));
  }
  table.columns.emplace_back("measured");
  out.push_back(std::move(table));
}

void figures(const Report& report, Json& out) {
  for (const LostTime& lost : report.lost_time) {
    const Waterfall waterfall = waterfall_of(report, lost);
    Json& entry = out["waterfall"].emplace_back(Json{{"ranks", lost.ranks}, {"ideal", lost.ranks}});
    for (const Step& step : waterfall.steps) entry["changes"][step.key] = step.change;
    entry["measured"] = waterfall.measured;
  }
}

// The axis begins near the smallest total, so that small changes can be read.
double axis_origin(const Waterfall& waterfall) {
  double least = waterfall.measured, reached = waterfall.ranks;
  for (const Step& step : waterfall.steps) least = std::min(least, reached += step.change);
  const double whole = std::max<double>(waterfall.ranks, waterfall.measured);
  if (least < 0.6 * whole) return 0;
  return std::max(0.0, std::floor(10 * (whole - 1.6 * (whole - least)) / whole) / 10 * whole);
}

void charts(const Report& report, std::vector<Chart>& out) {
  constexpr std::size_t most = 4;  // those of the most ranks, which come last
  const auto& all = report.lost_time;
  const LostTime* headline = headline_lost_time(report);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i + most < all.size() && &all[i] != headline) continue;
    const Waterfall waterfall = waterfall_of(report, all[i]);
    const double n = waterfall.ranks, seconds_of_one = all[i].actual_s / n;  // of a speed-up of 1
    Chart chart{.title = fmt::format("Speed-up of {} ranks: from {} down to {}", waterfall.ranks, waterfall.ranks,
                                     fixed(waterfall.measured, 3)),
                .kind = "waterfall",
                .origin = axis_origin(waterfall),
                .height = 290,
                .picture = &all[i] == headline};
    if (chart.origin > 0) chart.title += fmt::format(" (the axis begins at {})", significant(chart.origin, 3));
    chart.bars.push_back({"ideal", "total", 0, n, fixed(n, 0)});
    double reached = n;
    for (const Step& step : waterfall.steps) {
      if (std::abs(step.change) < 0.0005) continue;
      const double lost_s = -step.change * seconds_of_one;
      chart.bars.push_back(
          {step.name, step.key, reached, reached + step.change,
           fmt::format("{} ({}{})", signed_number(step.change), lost_s < 0 ? "−" : "", seconds(std::abs(lost_s)))});
      reached += step.change;
    }
    chart.bars.push_back({"measured", "total", 0, waterfall.measured, fixed(waterfall.measured, 3)});
    out.push_back(std::move(chart));
  }
}

}  // namespace waterfall_section

ScalingSection sections::waterfall() {
  using namespace waterfall_section;
  return {.tables = tables, .figures = figures, .charts = charts};
}

}  // namespace paceline::analysis
