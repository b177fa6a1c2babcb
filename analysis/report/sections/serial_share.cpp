// SPDX-License-Identifier: Apache-2.0
// The serial share: fitted by Amdahl's law and the Universal Scalability Law, and measured by the breakdowns.
#include <algorithm>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace serial_share_section {

// The peak of the Universal Scalability Law where the runs bound it: with an interval, if κ is above 0; without, if it
// lies within ten times the most ranks that were measured.
std::optional<double> shown_peak(const Scaling& scaling, const AmdahlFit& fit) {
  if (!fit.usl || fit.usl->kappa <= 0) return std::nullopt;
  const double peak = fit.usl->peak_ranks();
  if (fit.peak_ci95) return peak;
  if (fit.kappa_ci95) return std::nullopt;
  int most = 1;
  for (const std::size_t p : fit.points) most = std::max(most, scaling.points[p].ranks);
  return peak >= 1 && peak <= 10.0 * most ? std::optional(peak) : std::nullopt;
}

// "(95 %: 1.2–1.4)" behind the value, both with three significant digits.
std::string three_digits(double value, const std::optional<Interval>& ci95) {
  const std::string text = significant(value, 3);
  return ci95 ? fmt::format("{} (95 %: {}–{})", text, significant(ci95->low, 3), significant(ci95->high, 3)) : text;
}

std::string share_text(const MeasuredShare& measured) {
  if (measured.runs == 1) return with_interval(fixed(measured.share, 4), measured.ci95, 4);
  return fmt::format("{} (mean of {} runs, {}–{})", fixed(measured.share, 4), measured.runs, fixed(measured.low, 4),
                     fixed(measured.high, 4));
}

// What the serial share bounds. A share that may be 0 bounds nothing.
std::string limit_text(const AmdahlFit& fit) {
  const double s = fit.serial_fraction;
  if (fit.ci95 && !fit.limit_ci95) return ". It may be 0, so the runs do not bound the speed-up.";
  if (!fit.ci95 && s < least_bounding_share) return ".";
  return fmt::format(", which limits the speed-up to {} on any number of ranks.", three_digits(1 / s, fit.limit_ci95));
}

std::string scalability_text(const Scaling& scaling, const AmdahlFit& fit) {
  if (!fit.usl) return "";
  std::string text =
      fmt::format(" The Universal Scalability Law gives σ = {}, κ = {}", three_digits(fit.usl->sigma, fit.sigma_ci95),
                  three_digits(fit.usl->kappa, fit.kappa_ci95));
  if (const auto peak = shown_peak(scaling, fit)) {
    text += " and its peak at " + with_interval(fixed(*peak, 0), fit.peak_ci95, 0) + " ranks.";
  } else {
    text += ". The runs do not show where its peak is.";
  }
  return text + (fit.usl_weak ? " That is weak evidence, because it needs at least 6 rank counts." : "");
}

void beside_measured(const AmdahlFit& fit, const MeasuredShare& measured, SentenceList& out) {
  std::string text = fmt::format(
      "{} a serial share of {}, and the fit implies {}",
      measured.runs == 1 ? "The breakdown of the 1-rank run measures" : "The breakdowns of the 1-rank runs measure",
      share_text(measured), with_interval(fixed(fit.serial_fraction, 4), fit.ci95, 4));
  const auto& ci95 = measured.ci95;
  const bool both = ci95 && fit.ci95;
  if (!both || (ci95->high >= fit.ci95->low && fit.ci95->high >= ci95->low)) {
    out.say("measured", Severity::info, text + (both ? ". They agree within their intervals." : "."));
    return;
  }
  text += ". They differ by more than their intervals, because the fit knows only total times. ";
  text += fit.serial_fraction > measured.share
              ? "It counts communication, waiting and parallel work that became slower beside other ranks as serial."
              : "It cannot see parallel work that became faster when divided, nor serial work that the larger runs "
                "leave out.";
  out.say("measured", Severity::info, text + " The breakdown separates these. Use it to decide what to change.");
}

std::string misfit_text(const Scaling& scaling, const AmdahlFit& fit, const std::string& where) {
  const ScalingPoint& worst = scaling.points[fit.worst_point];
  std::string text = fmt::format(
      "Amdahl's law does not describe {}, so no serial share is derived: its residuals are larger than the noise "
      "explains. Its curve gives S({}) = {}, and {} was measured.",
      where, worst.ranks, fixed(amdahl_speedup(fit.serial_fraction, worst.ranks), 2), fixed(*worst.speedup, 2));
  if (fit.foreign) {
    text += fmt::format(" The {}-rank run does not belong to the series: no law passes through it and the others.",
                        scaling.points[*fit.foreign].ranks);
  }
  return text + scalability_text(scaling, fit);
}

// The breakdowns of the fit's 1-rank runs.
std::optional<MeasuredShare> measured_of(const Report& report, const AmdahlFit& fit) {
  for (const std::size_t p : fit.points) {
    const ScalingPoint& point = report.scaling.points[p];
    if (point.ranks != 1) continue;
    if (auto measured = measured_serial_share(report, point)) return measured;
  }
  return std::nullopt;
}

void add_fit(const Report& report, const AmdahlFit& fit, SentenceList& out) {
  const Scaling& scaling = report.scaling;
  const double s = fit.serial_fraction;
  const ScalingPoint& worst = scaling.points[fit.worst_point];
  const std::string where = fmt::format("{} ranks at {}", rank_counts_text(scaling, fit.points),
                                        work_text(scaling.points[fit.points.front()]));
  if (fit.misfit) return out.say("law", Severity::warning, misfit_text(scaling, fit, where));
  if (s > 1 - 1e-6 && fit.worst_miss > 1e-6 && !fit.ci95) {
    return out.say("law", Severity::warning,
                   fmt::format("Amdahl's law cannot describe {}: more ranks do not make even an entirely serial job "
                               "(s = 1) slower. The time that the ranks add outweighs the work that they share.",
                               where));
  }
  std::string text =
      fmt::format("Amdahl's law through {}: serial share s = {}", where, with_interval(fixed(s, 4), fit.ci95, 4)) +
      limit_text(fit);
  if (fit.points.size() == 2) text += " Two rank counts determine the law, so nothing tests whether it holds.";
  out.say("law", Severity::info, text + scalability_text(scaling, fit));
  if (fit.worst_miss > 0.05 && !fit.ci95) {
    out.say(
        "miss", Severity::warning,
        fmt::format("The curve misses a run by {}: it gives S({}) = {}, and {} was measured. Whether noise explains "
                    "that is not known. Repeat the runs, or give the noise with --noise.",
                    percent(fit.worst_miss), worst.ranks, fixed(amdahl_speedup(s, worst.ranks), 2),
                    fixed(*worst.speedup, 2)));
  }
  if (const auto measured = measured_of(report, fit)) beside_measured(fit, *measured, out);
}

// "program (chainer and chainermn)"; of several columns only their names.
std::string columns_text(const Scaling& scaling, const RefusedFit& refused) {
  constexpr std::size_t most_named = 8;
  std::string text = list_text(refused.columns);
  if (refused.columns.size() != 1) return text;
  std::vector<std::string> values;
  for (const std::size_t p : refused.points) {
    const auto found = scaling.points[p].series.find(refused.columns.front());
    const std::string value = found == scaling.points[p].series.end() ? "not given" : found->second;
    if (std::ranges::find(values, value) == values.end() && values.size() < most_named) values.push_back(value);
  }
  return text + fmt::format(" ({})", list_text(values));
}

std::string refused_text(const Scaling& scaling, const RefusedFit& refused) {
  const auto& points = scaling.points;
  std::string text = fmt::format("No Amdahl curve is fitted through {} ranks at {}: the runs differ in {}",
                                 rank_counts_text(scaling, refused.points), work_text(points[refused.points.front()]),
                                 columns_text(scaling, refused));
  if (refused.stranger) {
    const auto stranger = std::ranges::find(refused.points, *refused.stranger);
    const ScalingPoint &before = points[*(stranger - 1)], &at = points[*stranger];
    text += fmt::format(
        ", and Karp–Flatt's e falls from {} at {} ranks to {} at {}, which cannot happen with one program that has a "
        "serial share",
        significant(*before.karp_flatt, 3), before.ranks, significant(*at.karp_flatt, 3), at.ranks);
  }
  text += ".";
  if (refused.points.size() > 2) {
    const ScalingPoint& worst = points[refused.worst_point];
    text += fmt::format(
        " The curve (s ≈ {}, or {} if the speed of 1 rank is fitted as well) would give S({}) = {} where {} was "
        "measured.",
        fixed(refused.serial_fraction, 2), fixed(refused.serial_fraction_free_start, 2), worst.ranks,
        fixed(refused.curve_speedup, 2), fixed(*worst.speedup, 2));
  }
  if (refused.stranger) {
    text += fmt::format(" The {}-rank run does not belong to the series.", points[*refused.stranger].ranks);
  }
  return text;
}

void findings(const Report& report, SentenceList& out) {
  for (const auto& fit : report.scaling.fits) add_fit(report, fit, out);
  for (const auto& refused : report.scaling.refused) {
    out.say("refused", Severity::warning, refused_text(report.scaling, refused));
  }
}

void add_share(Table& table, const std::string& from, double s, const std::optional<Interval>& ci95, bool bounds) {
  std::string limit = bounds ? significant(1 / s, 3) : no_value;
  if (bounds && ci95) limit += fmt::format(" [{}–{}]", significant(1 / ci95->high, 3), significant(1 / ci95->low, 3));
  table.rows.push_back(
      {from, fixed(s, 4), ci95 ? fmt::format("{}–{}", fixed(ci95->low, 4), fixed(ci95->high, 4)) : no_value, limit});
}

Table shares_table(const Report& report) {
  Table table{.id = "serial-share",
              .title = "Serial share: fitted beside measured",
              .columns = {"from", "s", "95 % interval", "limit 1/s"},
              .note =
                  "The fit sees total times only and counts communication and slowed-down parallel work as serial. The "
                  "breakdown of the 1-rank run counts only seconds that stay."};
  const Scaling& scaling = report.scaling;
  // A share that may be 0 bounds nothing.
  const auto bounds = [](double s, const std::optional<Interval>& ci95) {
    return ci95 ? ci95->low > 1e-6 : s >= least_bounding_share;
  };
  for (const auto& fit : scaling.fits) {
    if (fit.misfit) continue;  // the law is refused
    add_share(table,
              fmt::format("Amdahl's law through {} ranks, {}", rank_counts_text(scaling, fit.points),
                          work_text(scaling.points[fit.points.front()])),
              fit.serial_fraction, fit.ci95, bounds(fit.serial_fraction, fit.ci95));
  }
  for (const auto& point : scaling.points) {
    if (point.ranks != 1 || scaling.fits.empty()) continue;
    const auto measured = measured_serial_share(report, point);
    if (!measured) continue;
    add_share(table,
              measured->runs == 1 ? "breakdown of the 1-rank run"
                                  : fmt::format("breakdowns of the 1-rank runs, mean of {}", measured->runs),
              measured->share, measured->ci95, bounds(measured->share, measured->ci95));
  }
  for (const auto& fit : scaling.weak) {
    if (fit.misfit) continue;
    add_share(table, fmt::format("Gustafson's law through {} ranks", rank_counts_text(scaling, fit.points)),
              fit.serial_fraction, fit.ci95, false);
  }
  return table;
}

Table scalability_table(const Scaling& scaling) {
  Table table{.id = "scalability",
              .title = "Universal Scalability Law",
              .columns = {"through", "σ contention", "κ coherency", "peak, ranks"},
              .note =
                  "Brackets hold the 95 % interval. The peak is left out where the runs do not bound it. Fewer than 6 "
                  "rank counts are weak evidence."};
  const auto three = [](double value) { return significant(value, 3); };
  for (const auto& fit : scaling.fits) {
    if (!fit.usl) continue;
    table.rows.push_back({fmt::format("{} ranks, {}", rank_counts_text(scaling, fit.points),
                                      work_text(scaling.points[fit.points.front()])),
                          with_range(fit.usl->sigma, fit.sigma_ci95, three),
                          with_range(fit.usl->kappa, fit.kappa_ci95, three),
                          with_range(shown_peak(scaling, fit), fit.peak_ci95, three)});
  }
  return table;
}

void tables(const Report& report, std::vector<Table>& out) {
  out.push_back(shares_table(report));
  out.push_back(scalability_table(report.scaling));
}

Json fit_json(const Scaling& scaling, const AmdahlFit& fit) {
  Json out = {{"serial_fraction", fit.serial_fraction},
              {"ranks", rank_counts_json(scaling, fit.points)},
              {"worst_miss", fit.worst_miss}};
  set(out, "ci95", fit.ci95);
  const ScalingPoint& first = scaling.points[fit.points.front()];
  if (first.epochs > 0) out["epochs"] = whole_number(first.epochs);
  if (first.images > 0) out["images"] = whole_number(first.images);
  set(out, "limit_ci95", fit.limit_ci95);
  if (fit.misfit) out["refused"] = true;
  if (fit.foreign) out["not_of_the_series"] = scaling.points[*fit.foreign].ranks;
  if (fit.usl) {
    Json& usl = out["usl"] = {{"sigma", fit.usl->sigma}, {"kappa", fit.usl->kappa}, {"weak", fit.usl_weak}};
    set(usl, "sigma_ci95", fit.sigma_ci95);
    set(usl, "kappa_ci95", fit.kappa_ci95);
    set(usl, "peak_ranks", shown_peak(scaling, fit));
    set(usl, "peak_ranks_ci95", fit.peak_ci95);
  }
  return out;
}

Json refused_json(const Scaling& scaling, const RefusedFit& refused) {
  const ScalingPoint& worst = scaling.points[refused.worst_point];
  Json out = {{"ranks", rank_counts_json(scaling, refused.points)},
              {"differs_in", refused.columns},
              {"karp_flatt_falls", refused.karp_flatt_falls},
              {"serial_fraction", refused.serial_fraction},
              {"serial_fraction_free_start", refused.serial_fraction_free_start},
              {"at_ranks", worst.ranks},
              {"curve_speedup", refused.curve_speedup},
              {"measured_speedup", *worst.speedup}};
  const ScalingPoint& first = scaling.points[refused.points.front()];
  if (first.epochs > 0) out["epochs"] = whole_number(first.epochs);
  if (refused.stranger) out["not_of_the_series"] = scaling.points[*refused.stranger].ranks;
  return out;
}

void figures(const Report& report, Json& out) {
  const Scaling& scaling = report.scaling;
  if (!scaling.fits.empty()) out["amdahl"] = fit_json(scaling, scaling.fits.front());
  for (const auto& fit : scaling.fits) out["fits"].push_back(fit_json(scaling, fit));
  for (const auto& refused : scaling.refused) out["refused_fits"].push_back(refused_json(scaling, refused));
  if (const auto measured = measured_serial_share(report)) {
    Json& share = out["measured_serial_share"] = {{"serial_fraction", measured->share}, {"runs", measured->runs}};
    set(share, "ci95", measured->ci95);
    if (measured->runs > 1) share["range"] = {measured->low, measured->high};
  }
}

}  // namespace serial_share_section

ScalingSection sections::serial_share() {
  using namespace serial_share_section;
  return {.findings = findings, .tables = tables, .figures = figures};
}

std::optional<MeasuredShare> measured_serial_share(const Report& report, const ScalingPoint& point) {
  MeasuredShare measured;
  for (const std::size_t r : point.runs) {
    const RunAnalysis* run = report.trace_of(r);
    if (run == nullptr || !run->breakdown) continue;
    const double share = run->breakdown->serial_share;
    measured.low = measured.runs == 0 ? share : std::min(measured.low, share);
    measured.high = measured.runs == 0 ? share : std::max(measured.high, share);
    measured.share += share;
    measured.ci95 = run->breakdown->serial_share_ci95;
    ++measured.runs;
  }
  if (measured.runs == 0) return std::nullopt;
  measured.share /= static_cast<double>(measured.runs);
  if (measured.runs > 1) measured.ci95.reset();
  return measured;
}

std::optional<MeasuredShare> measured_serial_share(const Report& report) {
  for (const auto& point : report.scaling.points) {
    if (point.ranks != 1) continue;
    if (auto measured = measured_serial_share(report, point)) return measured;
  }
  return std::nullopt;
}

}  // namespace paceline::analysis
