// SPDX-License-Identifier: Apache-2.0
// The speed-up of each point at equal work.
#include <algorithm>
#include <cmath>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"

namespace paceline::analysis {
namespace speed_up_section {

// A run of 1 rank that was short of CPUs makes each speed-up look greater than it is.
void say_baseline_lacked_cpus(const Report& report, const ScalingPoint& many, SentenceList& out) {
  const auto waited = mean_cpu_waiting(report, report.scaling.points[*many.baseline]);
  const auto others = mean_cpu_waiting(report, many);
  out.say(
      "baseline", Severity::warning,
      fmt::format("S({}) = {} is too high: in the run of 1 rank, the main thread waited {} of the time for a CPU{}. "
                  "Record 1 rank again while nothing else uses its CPUs.",
                  many.ranks, fixed(*many.speedup, 3), percent(*waited),
                  others ? fmt::format(", against {} with {} ranks", percent(*others), many.ranks) : ""));
}

void speed_up(const Report& report, const ScalingPoint& point, SentenceList& out) {
  if (!point.speedup || point.ranks == 1) return;
  const ScalingPoint& one = report.scaling.points[*point.baseline];
  const int n = point.ranks;
  std::string text =
      fmt::format("{} ranks need {} where 1 rank needs {} for {}: S({}) = {}, efficiency {}, Karp–Flatt e({}) = {}", n,
                  seconds(point.seconds), seconds(one.seconds), work_text(point), n,
                  with_interval(fixed(*point.speedup, 3), point.speedup_ci95, 3), percent(*point.efficiency), n,
                  (*point.karp_flatt < 0 ? "−" : "") + significant(std::abs(*point.karp_flatt), 3));
  if (!point.differences.empty())
    text += fmt::format("; the two runs differ in {}", differences_text(point.differences));
  out.say("speed-up", Severity::info, text + ".");
  if (point.verdict == Verdict::slower) {
    out.say("slower", Severity::warning,
            fmt::format("{} ranks are slower than one: the added ranks cost more time here than they save.", n));
  } else if (point.verdict == Verdict::unknown && *point.speedup < 1) {
    out.say(
        "slower", Severity::info,
        fmt::format("In these runs, {} ranks took longer than one. Whether that is more than noise is not known.", n));
  }
  if (baseline_lacked_cpus(report, point)) return say_baseline_lacked_cpus(report, point, out);
  // Where the noise is not known, an excess of a tenth is worth a look.
  if (point.above_ranks || (point.verdict == Verdict::unknown && *point.speedup > 1.1 * n)) {
    out.say("above", Severity::warning,
            fmt::format("S({0}) = {1} is above {0}, which a perfect division of all work would give. Check whether the "
                        "run of {0} ranks leaves work out, or whether its data fit into caches or memory only when "
                        "divided.",
                        n, fixed(*point.speedup, 3)));
  }
}

std::string why_none(const ScalingPoint& point) {
  if (!point.other_work.empty()) {
    return fmt::format("No speed-up for {} ranks at {}: the run of 1 rank does other work ({}).", point.ranks,
                       work_text(point), differences_text(point.other_work));
  }
  if (point.images > 0) {
    return fmt::format("No speed-up for {} ranks at {} ({} images): there is no run of 1 rank with equal work.",
                       point.ranks, work_text(point), count(point.images));
  }
  return fmt::format(
      "No speed-up for {} ranks: the number of images that the runs trained on is not known. Record with `--set "
      "images_per_iteration=N`.",
      point.ranks);
}

void findings(const Report& report, SentenceList& out) {
  const Scaling& scaling = report.scaling;
  const auto& points = scaling.points;
  for (const auto& point : points) speed_up(report, point, out);
  if (points.empty()) return;
  if (scaling.rank_counts < 2) {
    const int ranks = points.front().ranks;
    out.say("one rank count", Severity::info,
            fmt::format("No scaling figures: all runs have {}, and a speed-up or a law needs at least two rank counts. "
                        "Run the same work on {} as well.",
                        plural(static_cast<std::size_t>(ranks), "rank", "ranks"), ranks == 1 ? "2 ranks" : "1 rank"));
    return;
  }
  for (const auto& point : points) {
    if (point.ranks == 1 || point.speedup || point.scaled_speedup) continue;
    out.say("none", Severity::warning, why_none(point));
  }
}

void tables(const Report& report, std::vector<Table>& out) {
  const auto& points = report.scaling.points;
  if (points.size() <= 1 && !report.runs.empty()) return;
  Table table{.id = "scaling",
              .title = "Speed-up at equal work",
              .columns = {"run", "ranks", "epochs", "images", "time", "throughput", "S(N)", "E(N)", "Karp–Flatt"},
              .note =
                  "S(N) = T(1)/T(N) and E = S/N; T is the time of the whole job, from process start to end. Brackets "
                  "hold the 95 % interval, from three or more repeats or from the iterations of one run."};
  const bool accuracy = std::ranges::any_of(points, [](const auto& p) { return p.accuracy.has_value(); });
  const bool differences = std::ranges::any_of(points, [](const auto& p) { return !p.differences.empty(); });
  if (accuracy) table.columns.insert(table.columns.end(), {"accuracy", "time to target"});
  if (differences) table.columns.push_back("differs from its 1-rank run in");
  table.last_is_text = differences;
  for (const auto& point : points) {
    auto& row = table.rows.emplace_back();
    if (table.rows.size() > most_rows_printed) continue;  // will only be counted
    row = {point_label(report, point),
           std::to_string(point.ranks),
           point.epochs > 0 ? count(point.epochs) : no_value,
           point.images > 0 ? count(point.images) : no_value,
           seconds(point.seconds),
           point.images > 0 ? images_per_second(point.throughput) : no_value,
           with_range(point.speedup, point.speedup_ci95, [](double s) { return fixed(s, 3); }),
           with_range(point.efficiency, point.efficiency_ci95, percent),
           with_range(point.karp_flatt, point.karp_flatt_ci95, [](double e) { return significant(e, 3); })};
    if (accuracy) {
      row.push_back(or_none(point.accuracy, percent));
      row.push_back(or_none(point.seconds_to_accuracy, seconds));
    }
    if (differences) row.push_back(point.differences.empty() ? no_value : differences_text(point.differences));
  }
  out.push_back(std::move(table));
}

const char* spread_name(SpreadSource source) {
  constexpr const char* names[] = {"unknown", "two repeats", "equal repeats", "few iterations", "iterations of one run",
                                   "repeats", "given"};
  return names[static_cast<std::size_t>(source)];
}

Json point_json(const Report& report, const ScalingPoint& point) {
  Json out = {{"ranks", point.ranks}};
  if (point.epochs > 0) out["epochs"] = whole_number(point.epochs);
  if (point.images > 0) {
    out["images"] = whole_number(point.images);
    out["throughput"] = point.throughput;
  }
  out["seconds"] = point.seconds;
  out["runs"] = Json::array();
  for (const std::size_t r : point.runs) out["runs"].push_back(report.scaling_runs[r].label);
  set(out, "speedup", point.speedup);
  set(out, "speedup_ci95", point.speedup_ci95);
  set(out, "efficiency", point.efficiency);
  set(out, "efficiency_ci95", point.efficiency_ci95);
  set(out, "karp_flatt", point.karp_flatt);
  set(out, "karp_flatt_ci95", point.karp_flatt_ci95);
  set(out, "weak_efficiency", point.weak_efficiency);
  set(out, "weak_efficiency_ci95", point.weak_efficiency_ci95);
  set(out, "scaled_speedup", point.scaled_speedup);
  set(out, "scaled_speedup_ci95", point.scaled_speedup_ci95);
  set_verdict(out, point.verdict);
  out["spread"] = spread_name(point.spread.source);
  set(out, "accuracy", point.accuracy);
  set(out, "seconds_to_accuracy", point.seconds_to_accuracy);
  if (!point.config.empty()) out["config"] = point.config;
  if (!point.differences.empty()) out["differences"] = differences_json(point.differences);
  return out;
}

void figures(const Report& report, Json& out) {
  out["points"] = Json::array();
  for (const auto& point : report.scaling.points) out["points"].push_back(point_json(report, point));
}

using nlohmann::json;

// One series for each amount of work, whose points follow each other. More series than a few could not be read.
json measured_series(const std::vector<ScalingPoint>& points, int& most_ranks) {
  constexpr std::size_t most_series = 8, most_points = 400;
  json series = json::array();
  for (std::size_t p = 0; p < points.size() && series.size() < most_series;) {
    json values = json::array();
    const ScalingPoint& first = points[p];
    for (; p < points.size() && points[p].work == first.work; ++p) {
      const ScalingPoint& point = points[p];
      if (!point.speedup || values.size() >= most_points) continue;
      Json value = {{"x", point.ranks}, {"y", *point.speedup}};
      set(value, "ci", point.speedup_ci95);
      values.push_back(json(value));
      most_ranks = std::max(most_ranks, point.ranks);
    }
    if (values.size() < 2) continue;
    series.push_back({{"label", fmt::format("measured, {} epochs", count(first.epochs))},
                      {"points", std::move(values)},
                      {"epochs", first.epochs}});
  }
  if (series.size() == 1) series[0]["label"] = "measured";
  return series;
}

// The laws of the best fit, each with the band of its interval where that is known.
json fitted_curves(const Scaling& scaling, int most_ranks) {
  json curves = json::array();
  const auto fit = std::ranges::find(scaling.fits, false, &AmdahlFit::misfit);
  if (fit == scaling.fits.end()) return curves;
  const auto add = [&](std::string label, auto&& speed_up) {
    json points = json::array();
    for (int i = 0; i <= 40; ++i) {
      const double n = 1 + (most_ranks - 1) * i / 40.0;
      points.push_back(speed_up(n));
      points.back()["x"] = n;
    }
    curves.push_back({{"label", std::move(label)}, {"points", std::move(points)}});
  };
  // A share of 1 means that the law cannot describe the runs.
  if (fit->serial_fraction < 0.999)
    add(fmt::format("Amdahl, s = {}", fixed(fit->serial_fraction, 3)), [&](double n) {
      json point = {{"y", amdahl_speedup(fit->serial_fraction, n)}};
      if (fit->ci95) point["ci"] = {amdahl_speedup(fit->ci95->high, n), amdahl_speedup(fit->ci95->low, n)};
      return point;
    });
  if (fit->usl && (fit->usl->sigma > 0 || fit->usl->kappa > 0)) {
    add("Universal Scalability Law", [&](double n) { return json{{"y", fit->usl->capacity(n)}}; });
  }
  return curves;
}

void charts(const Report& report, std::vector<Chart>& out) {
  const auto& points = report.scaling.points;
  int most = 1;
  json series = measured_series(points, most);
  if (series.empty()) return;
  out.push_back({.title = "Speed-up over ranks",
                 .kind = "speedup",
                 .data = {{"series", series}, {"curves", fitted_curves(report.scaling, most)}, {"most", most}},
                 .picture = true});
  if (!report.lost_time.empty()) return;  // that section's chart stands here instead
  json rows = json::array();
  for (const auto& point : points) {
    if (point.images <= 0 || rows.size() >= most_rows_printed) continue;
    rows.push_back({{"label", point.epochs > 0 ? fmt::format("{} × {} ep.", point.ranks, count(point.epochs))
                                               : fmt::format("{}", point.ranks)},
                    {"value", point.throughput}});
  }
  out.push_back({.title = "Throughput, images/s", .kind = "throughput", .data = {{"rows", rows}}});
}

}  // namespace speed_up_section

ScalingSection sections::speed_up() {
  using namespace speed_up_section;
  return {findings, tables, figures, charts};
}

}  // namespace paceline::analysis
