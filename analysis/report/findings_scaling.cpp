#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "analysis/report/findings.h"
#include "analysis/report/numbers.h"

namespace paceline::analysis {
namespace {

// How far two accuracies lie apart by the choice of test images alone, in 95 of 100 cases: 1.96 standard errors of the
// difference of two binomial shares. Nothing where the number of test images is not known.
std::optional<double> accuracy_by_chance(const ScalingPoint& one, const ScalingPoint& other) {
  double variance = 0;
  for (const ScalingPoint* point : {&one, &other}) {
    const auto found = point->config.find("test_images");
    if (found == point->config.end()) return std::nullopt;
    double images = 0;
    const char* const end = found->second.data() + found->second.size();
    const auto parsed = std::from_chars(found->second.data(), end, images);
    if (parsed.ec != std::errc() || parsed.ptr != end || !(images >= 1)) return std::nullopt;
    variance += *point->accuracy * (1 - *point->accuracy) / images;
  }
  return 1.96 * std::sqrt(variance);
}

class ScalingSentences {
 public:
  ScalingSentences(const Report& report, std::vector<Finding>& out)
      : report_(report), scaling_(report.scaling), points_(report.scaling.points), out_(out) {}

  void write() {
    for (const auto& point : points_) speed_up(point);
    why_none();
    for (const auto& lost : report_.lost_time) say(Severity::info, lost_time_text(report_, lost));
    for (const auto& fit : scaling_.fits) fitted(fit);
    for (const auto& refused : scaling_.refused) refuse(refused);
    time_model();
    for (const auto& point : points_) accuracy(point);
    noise();
  }

 private:
  void say(Severity severity, std::string text) {
    const bool said = std::ranges::any_of(out_, [&](const Finding& finding) { return finding.text == text; });
    if (!said)
      out_.push_back({severity, std::move(text)});  // several configurations can have the same to be said of them
  }

  std::string ranks_of(const std::vector<std::size_t>& which) const {
    std::set<int> ranks;
    for (const std::size_t p : which) ranks.insert(points_[p].ranks);
    std::vector<std::string> names;
    for (const int n : ranks) names.push_back(std::to_string(n));
    return list_text(names);
  }

  void speed_up(const ScalingPoint& point) {
    if (!point.speedup || point.ranks == 1) return;
    const ScalingPoint& one = points_[*point.baseline];
    std::string text =
        fmt::format("{} ranks need {} where 1 rank needs {} for {}: S({}) = {}, efficiency {}, Karp–Flatt e({}) = {}",
                    point.ranks, seconds(point.seconds), seconds(one.seconds), work_text(point), point.ranks,
                    with_interval(fixed(*point.speedup, 3), point.speedup_ci95, 3), percent(*point.efficiency),
                    point.ranks, significant(*point.karp_flatt, 3));
    if (!point.differences.empty()) {
      text += fmt::format("; the two runs differ in {}", differences_text(point.differences));
    }
    say(Severity::info, text + ".");
    if (*point.speedup < 1) {
      say(Severity::warning,
          fmt::format("{} ranks are slower than one: adding ranks costs more here than it saves.", point.ranks));
    }
    if (*point.speedup > point.ranks) {
      say(Severity::warning,
          fmt::format(
              "S({}) = {} is above {}: more than all work divided. Look for work that the run of {} ranks leaves out, "
              "or for data that fits into caches or memory only when divided.",
              point.ranks, fixed(*point.speedup, 3), point.ranks, point.ranks));
    }
  }

  void why_none() {
    if (points_.empty()) return;
    if (scaling_.rank_counts < 2) {
      const int ranks = points_.front().ranks;
      say(Severity::info,
          fmt::format("No speed-up and no law: all runs have {}, and a fit needs at least two rank counts. Run the "
                      "same work on {} as well.",
                      plural(static_cast<std::size_t>(ranks), "rank", "ranks"), ranks == 1 ? "2 ranks" : "1 rank"));
      return;
    }
    for (const auto& point : points_) {
      if (point.ranks == 1 || point.speedup) continue;
      const bool images_known = point.images > 0;
      say(Severity::warning,
          images_known
              ? fmt::format("No speed-up for {} ranks at {} ({} images): there is no run of 1 rank with equal work.",
                            point.ranks, work_text(point), count(point.images))
              : fmt::format("No speed-up for {} ranks: how many images the runs trained on is not known. Record with "
                            "`--set images_per_iteration=N`.",
                            point.ranks));
    }
  }

  // What the breakdowns of a fit's runs of one rank measured.
  std::optional<MeasuredShare> measured_beside(const AmdahlFit& fit) const {
    for (const std::size_t p : fit.points) {
      if (points_[p].ranks != 1) continue;
      if (auto share = measured_serial_share(report_, points_[p])) return share;
    }
    return std::nullopt;
  }

  void fitted(const AmdahlFit& fit) {
    const double s = fit.serial_fraction;
    if (s > 1 - 1e-6) {
      say(Severity::warning,
          fmt::format("Amdahl's law cannot describe {} ranks at {}: even a job that is serial altogether (s = 1) is "
                      "not made slower by more ranks. What they add, not what they share, decides here.",
                      ranks_of(fit.points), work_text(points_[fit.points.front()])));
      return;
    }
    std::string text = fmt::format("Amdahl's law through {} ranks at {}: serial share s = {}", ranks_of(fit.points),
                                   work_text(points_[fit.points.front()]), with_interval(fixed(s, 4), fit.ci95, 4));
    if (s >= 1e-4)  // below, it prints as 0, and a limit of millions of ranks says nothing
      text += fmt::format("; by it no number of ranks is more than {} times as fast as one", significant(1 / s, 3));
    text += fit.points.size() == 2 ? ". Two rank counts determine it, so nothing tests whether the law holds." : ".";
    if (fit.usl) {
      text += fmt::format(" The Universal Scalability Law gives σ = {}, κ = {}", significant(fit.usl->sigma, 3),
                          significant(fit.usl->kappa, 3));
      if (fit.usl->kappa > 0) text += fmt::format(" and its peak at {} ranks", fixed(fit.usl->peak_ranks(), 0));
      text += fit.usl_weak ? "; that is weak evidence, it wants at least 6 rank counts." : ".";
    }
    say(Severity::info, std::move(text));
    if (fit.worst_miss > 0.05) {
      const auto& point = points_[fit.worst_point];
      say(Severity::warning,
          fmt::format("The curve does not describe the runs: it gives S({}) = {} where {} was measured.", point.ranks,
                      fixed(amdahl_speedup(s, point.ranks), 2), fixed(*point.speedup, 2)));
    }
    if (const auto measured = measured_beside(fit)) beside_measured(fit, *measured);
  }

  void beside_measured(const AmdahlFit& fit, const MeasuredShare& breakdown) {
    const auto& measured = breakdown.ci95;
    std::string text = fmt::format(
        "{} a serial share of {}, the fit implies {}",
        breakdown.runs == 1 ? "The breakdown of the 1-rank run measures" : "The breakdowns of the 1-rank runs measure",
        measured_share_text(breakdown), with_interval(fixed(fit.serial_fraction, 4), fit.ci95, 4));
    const bool apart = measured && fit.ci95 && (measured->high < fit.ci95->low || fit.ci95->high < measured->low);
    if (!apart) {
      say(Severity::info, text + (measured && fit.ci95 ? ": within their intervals they agree." : "."));
      return;
    }
    text += ". They differ by more than their intervals, because the fit knows only total times: ";
    text +=
        fit.serial_fraction > breakdown.share
            ? "it takes for serial what more ranks add (communication, waiting) and parallel work that became slower "
              "beside other ranks. The breakdown tells these apart; believe it on what to change."
            : "it cannot see parallel work that became faster when divided, nor serial work that the larger runs leave "
              "out. The breakdown tells these apart; believe it on what to change.";
    say(Severity::info, std::move(text));
  }

  void refuse(const RefusedFit& refused) {
    std::string columns = list_text(refused.columns);
    for (const auto& column : refused.columns) {
      std::vector<std::string> values;
      for (const std::size_t p : refused.points) {
        const auto found = points_[p].config.find(column);
        const std::string value = found == points_[p].config.end() ? "not given" : found->second;
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      }
      if (refused.columns.size() == 1) columns += fmt::format(" ({})", list_text(values));
    }
    std::string text = fmt::format("No Amdahl curve is laid through {} ranks at {}: the runs differ in {}",
                                   ranks_of(refused.points), work_text(points_[refused.points.front()]), columns);
    if (refused.karp_flatt_falls) {
      const auto stranger = std::find(refused.points.begin(), refused.points.end(), *refused.stranger);
      text += fmt::format(
          ", and Karp–Flatt's e falls from {} at {} ranks to {} at {}, which one program with a serial share "
          "cannot do",
          significant(*points_[*(stranger - 1)].karp_flatt, 3), points_[*(stranger - 1)].ranks,
          significant(*points_[*stranger].karp_flatt, 3), points_[*stranger].ranks);
    }
    text += ".";
    if (refused.points.size() > 2) {
      const auto& worst = points_[refused.worst_point];
      text += fmt::format(
          " The curve (s ≈ {}, or {} where the speed of 1 rank is fitted too) would give S({}) = {} where {} was "
          "measured.",
          fixed(refused.serial_fraction, 2), fixed(refused.serial_fraction_free_start, 2), worst.ranks,
          fixed(refused.curve_speedup, 2), fixed(*worst.speedup, 2));
    }
    if (refused.stranger)
      text += fmt::format(" The {}-rank run does not belong to the series.", points_[*refused.stranger].ranks);
    say(Severity::warning, std::move(text));
  }

  void time_model() {
    if (scaling_.time_model.empty()) return;
    std::string text = "Runs of different lengths give both terms of T = fixed + epochs × epoch: ";
    std::vector<std::string> rows;
    for (const auto& row : scaling_.time_model) {
      rows.push_back(fmt::format("{}: {} s an epoch and {} s before and beside training",
                                 plural(static_cast<std::size_t>(row.ranks), "rank", "ranks"),
                                 fixed(row.model.per_epoch_s, 3), fixed(row.model.fixed_s, 2)));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) text += (i > 0 ? "; " : "") + rows[i];
    say(Severity::info, text + ".");
    for (const auto& row : scaling_.time_model) limit(row);
  }

  void limit(const TimeModelRow& row) {
    if (!row.speedup_limit) return;
    const TimeModelRow* one = nullptr;
    for (const auto& other : scaling_.time_model) {
      if (other.ranks == 1 && other.model.per_epoch_s / row.model.per_epoch_s == *row.speedup_limit) one = &other;
    }
    std::string text =
        fmt::format("The speed-up of long runs on {} ranks tends to {}/{} = {}", row.ranks,
                    fixed(one->model.per_epoch_s, 3), fixed(row.model.per_epoch_s, 3), fixed(*row.speedup_limit, 3));
    if (!row.differences.empty())
      text += fmt::format(" (between runs that differ in {})", differences_text(row.differences));
    text += ".";
    const ScalingPoint& shortest = points_[row.points.front()];
    if (shortest.speedup && *shortest.speedup < *row.speedup_limit && row.model.fixed_s > one->model.fixed_s) {
      text += fmt::format(
          " The {} s that the {}-rank program spends before and beside training, against {} s on 1 rank, explain "
          "why the run of {} shows only {}.",
          fixed(row.model.fixed_s, row.model.fixed_s >= 10 ? 0 : 1), row.ranks,
          fixed(one->model.fixed_s, one->model.fixed_s >= 10 ? 0 : 1), work_text(shortest),
          fixed(*shortest.speedup, 2));
    }
    say(Severity::info, std::move(text));
  }

  void accuracy(const ScalingPoint& point) {
    if (!point.baseline || point.ranks == 1 || !point.accuracy || !point.speedup) return;
    const ScalingPoint& one = points_[*point.baseline];
    if (!one.accuracy) return;
    const double lost = *one.accuracy - *point.accuracy;
    const auto chance = accuracy_by_chance(one, point);
    if (lost > chance.value_or(0.01) && *point.speedup > 1) {
      say(Severity::warning,
          fmt::format("Speed bought with accuracy: {} ranks are {} times as fast but reach {} where 1 rank reaches "
                      "{}{}. More ranks make a larger batch: a learning rate that grows with it, and warm-up, "
                      "usually win it back.",
                      point.ranks, fixed(*point.speedup, 2), percent(*point.accuracy), percent(*one.accuracy),
                      chance ? fmt::format(", more than the {} points that the choice of test images explains (95 %)",
                                           fixed(100 * *chance, 1))
                             : ""));
    }
    if (one.seconds_to_accuracy && point.seconds_to_accuracy) {
      say(Severity::info,
          fmt::format("To the target accuracy {} ranks need {}, 1 rank {}: {} times as fast where it counts.",
                      point.ranks, seconds(*point.seconds_to_accuracy), seconds(*one.seconds_to_accuracy),
                      fixed(*one.seconds_to_accuracy / *point.seconds_to_accuracy, 2)));
    } else if (one.seconds_to_accuracy) {
      say(Severity::warning, fmt::format("The target accuracy that 1 rank reaches in {} is never reached by {} ranks.",
                                         seconds(*one.seconds_to_accuracy), point.ranks));
    }
  }

  void noise() {
    const bool any_speed_up =
        std::any_of(points_.begin(), points_.end(), [](const auto& p) { return p.karp_flatt.has_value(); });
    const bool all_single = std::all_of(points_.begin(), points_.end(), [&](const auto& p) {
      return p.runs.size() == 1 && report_.scaling_runs[p.runs.front()].iteration_seconds.size() < 2;
    });
    if (any_speed_up && all_single) {
      say(Severity::info,
          "Each figure rests on one run whose iterations are not known, so no intervals can be given: repeat the "
          "runs (equal rows are averaged and give intervals), or record them.");
    }
  }

  const Report& report_;
  const Scaling& scaling_;
  const std::vector<ScalingPoint>& points_;
  std::vector<Finding>& out_;
};

}  // namespace

std::string differences_text(const std::vector<Difference>& differences) {
  std::vector<std::string> parts;
  const auto named = [](const std::string& value) { return value.empty() ? "not given" : value; };
  for (const auto& d : differences) parts.push_back(fmt::format("{}: {} → {}", d.column, named(d.from), named(d.to)));
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

std::string work_text(const ScalingPoint& point) {
  if (point.epochs > 0) return fmt::format("{} {}", count(point.epochs), point.epochs == 1 ? "epoch" : "epochs");
  return count(point.images) + " images";
}

void add_scaling_findings(const Report& report, std::vector<Finding>& out) { ScalingSentences(report, out).write(); }

}  // namespace paceline::analysis
