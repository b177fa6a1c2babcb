// From the ideal speed-up N to the measured one, cause by cause. The steps add up exactly.
//
// With W the mean wall time over the ranks, W(N) = W(1)/N + serial + communication + slower parallel work (LostTime).
// So N − W(1)/W(N) is the sum of N × seconds/W(N) over these causes. The speed-up itself is measured by the time of the
// whole job, that of the last rank, which the last step accounts for.
#include <algorithm>

#include "analysis/report/sections.h"
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
  Waterfall out{.ranks = lost.ranks,
                .measured = report.scaling.points[lost.point].speedup.value_or(lost.ideal_s * per_second),
                .steps = {{"serial", "serial work", -lost.serial_s * per_second},
                          {"transfer", "communication: transfer", -(lost.overhead_s - lost.waiting_s) * per_second},
                          {"waiting", "communication: waiting", -lost.waiting_s * per_second},
                          {"parallel", "slower parallel work", -lost.slowdown_s * per_second}}};
  double reached = n;
  for (const Step& step : out.steps) reached += step.change;
  out.steps.push_back({"last_rank", "last rank's end", out.measured - reached});
  return out;
}

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
      row.push_back(fmt::format("{:+.3f}", step.change));
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

void charts(const Report& report, std::vector<Chart>& out) {
  constexpr std::size_t most = 4;  // those of the most ranks, which come last
  const auto& all = report.lost_time;
  for (std::size_t i = all.size() - std::min(most, all.size()); i < all.size(); ++i) {
    const Waterfall waterfall = waterfall_of(report, all[i]);
    const double n = waterfall.ranks;
    nlohmann::json rows = {{{"label", "ideal"}, {"kind", "total"}, {"from", 0}, {"to", n}, {"text", fixed(n, 0)}}};
    double reached = n;
    for (const Step& step : waterfall.steps) {
      rows.push_back({{"label", step.name},
                      {"kind", step.key},
                      {"from", reached},
                      {"to", reached + step.change},
                      {"text", fmt::format("{:+.3f}", step.change)}});
      reached += step.change;
    }
    rows.push_back({{"label", "measured"},
                    {"kind", "total"},
                    {"from", 0},
                    {"to", waterfall.measured},
                    {"text", fixed(waterfall.measured, 3)}});
    out.push_back({.title = fmt::format("Speed-up of {} ranks: from {} down to {}", waterfall.ranks, waterfall.ranks,
                                        fixed(waterfall.measured, 3)),
                   .kind = "waterfall",
                   .data = {{"rows", rows}},
                   .height = 290});
  }
}

}  // namespace waterfall_section

ScalingSection sections::waterfall() {
  using namespace waterfall_section;
  return {.tables = tables, .figures = figures, .charts = charts};
}

}  // namespace paceline::analysis
