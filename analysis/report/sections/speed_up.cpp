#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "analysis/report/findings.h"
#include "analysis/report/scaling_sentences.h"
#include "analysis/text/numbers.h"

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
    add_series_findings(report_, out_);
    time_model();
    for (const auto& point : points_) accuracy(point);
    add_noise_findings(report_, out_);
    out_.finish();
  }

 private:
  void say(Severity severity, std::string text) { out_.say("other", severity, std::move(text)); }

  std::string ranks_of(const std::vector<std::size_t>& which) const { return ranks_text(scaling_, which); }

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
    out_.say("speed-up", Severity::info, text + ".");
    if (point.verdict == Verdict::slower) {
      out_.say("slower", Severity::warning,
               fmt::format("{} ranks are slower than one: adding ranks costs more here than it saves.", point.ranks));
    } else if (point.verdict == Verdict::unknown && *point.speedup < 1) {
      out_.say("slower", Severity::info,
               fmt::format("In these runs {} ranks took longer than one. Whether that is more than noise is not known.",
                           point.ranks));
    }
    // Where noise is not known, an excess of a tenth is worth a look.
    if (point.above_ranks || (point.verdict == Verdict::unknown && *point.speedup > 1.1 * point.ranks)) {
      out_.say("above", Severity::warning,
               fmt::format("S({}) = {} is above {}: more than all work divided. Look for work that the run of {} ranks "
                           "leaves out, or for data that fits into caches or memory only when divided.",
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
      if (point.ranks == 1 || point.speedup || point.scaled_speedup) continue;
      std::string text;
      if (!point.other_work.empty()) {
        text = fmt::format("No speed-up for {} ranks at {}: the run of 1 rank does other work ({}).", point.ranks,
                           work_text(point), differences_text(point.other_work));
      } else if (point.images > 0) {
        text = fmt::format("No speed-up for {} ranks at {} ({} images): there is no run of 1 rank with equal work.",
                           point.ranks, work_text(point), count(point.images));
      } else {
        text = fmt::format(
            "No speed-up for {} ranks: how many images the runs trained on is not known. Record with "
            "`--set images_per_iteration=N`.",
            point.ranks);
      }
      out_.say("none", Severity::warning, std::move(text));
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
    const ScalingPoint& worst = points_[fit.worst_point];
    const std::string through = ranks_of(fit.points), work = work_text(points_[fit.points.front()]);
    if (fit.misfit) {
      std::string text = fmt::format(
          "Amdahl's law does not describe {} ranks at {}, so no serial share is derived: its residuals are larger than "
          "the noise explains. Its curve gives S({}) = {} where {} was measured.",
          through, work, worst.ranks, fixed(amdahl_speedup(s, worst.ranks), 2), fixed(*worst.speedup, 2));
      if (fit.foreign) {
        text += fmt::format(
            " The {} does not belong to the series: no law passes through it and the others.",
            points_[*fit.foreign].ranks == 1 ? "1-rank run" : fmt::format("{}-rank run", points_[*fit.foreign].ranks));
      }
      out_.say("law", Severity::warning, text + scalability_law(fit));
      return;
    }
    if (s > 1 - 1e-6 && !fit.ci95) {
      out_.say("law", Severity::warning,
               fmt::format("Amdahl's law cannot describe {} ranks at {}: even a job that is serial altogether (s = 1) "
                           "is not made slower by more ranks. What they add, not what they share, decides here.",
                           through, work));
      return;
    }
    std::string text = fmt::format("Amdahl's law through {} ranks at {}: serial share s = {}", through, work,
                                   with_interval(fixed(s, 4), fit.ci95, 4));
    text += limit_of(fit);
    text += fit.points.size() == 2 ? ". Two rank counts determine it, so nothing tests whether the law holds." : ".";
    text += scalability_law(fit);
    out_.say("law", Severity::info, std::move(text));
    if (fit.worst_miss > 0.05 && !fit.ci95) {
      out_.say("miss", Severity::warning,
               fmt::format("The curve misses a run by {}: it gives S({}) = {} where {} was measured. Whether noise "
                           "explains that is not known: repeat the runs, or give the noise with --noise.",
                           percent(fit.worst_miss), worst.ranks, fixed(amdahl_speedup(s, worst.ranks), 2),
                           fixed(*worst.speedup, 2)));
    }
    if (const auto measured = measured_beside(fit)) beside_measured(fit, *measured);
  }

  // What the serial share bounds: a share that may be 0 bounds nothing.
  std::string limit_of(const AmdahlFit& fit) const {
    const double s = fit.serial_fraction;
    if (fit.ci95 && !fit.limit_ci95) return ", which may be 0, so the runs do not bound the speed-up";
    if (!fit.ci95 && s < least_bounding_share) return "";
    return fmt::format("; by it no number of ranks is more than {} times as fast as one",
                       fit.limit_ci95
                           ? fmt::format("{} (95 %: {}–{})", significant(1 / s, 3), significant(fit.limit_ci95->low, 3),
                                         significant(fit.limit_ci95->high, 3))
                           : significant(1 / s, 3));
  }

  std::string scalability_law(const AmdahlFit& fit) const {
    if (!fit.usl) return "";
    const auto figure = [](double value, const std::optional<Interval>& ci95) {
      const std::string text = significant(value, 3);
      if (!ci95) return text;
      return fmt::format("{} (95 %: {}–{})", text, significant(ci95->low, 3), significant(ci95->high, 3));
    };
    std::string text = fmt::format(" The Universal Scalability Law gives σ = {}, κ = {}",
                                   figure(fit.usl->sigma, fit.sigma_ci95), figure(fit.usl->kappa, fit.kappa_ci95));
    if (const auto peak = shown_peak(scaling_, fit)) {
      text += fmt::format(" and its peak at {} ranks", fixed(*peak, 0));
      if (fit.peak_ci95) {
        text += fmt::format(" (95 %: {}–{})", fixed(fit.peak_ci95->low, 0), fixed(fit.peak_ci95->high, 0));
      }
    } else {
      text += "; the runs do not show where its peak is";
    }
    return text + (fit.usl_weak ? "; that is weak evidence, it wants at least 6 rank counts." : ".");
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

  void time_model() {
    for (const int ranks : scaling_.no_time_model) {
      out_.say("no time model", Severity::warning,
               fmt::format("No time model for {}: the runs of more epochs did not take longer.",
                           plural(static_cast<std::size_t>(ranks), "rank", "ranks")));
    }
    if (scaling_.time_model.empty()) return;
    constexpr std::size_t most_rows = 8;
    std::string text = "Runs of different lengths give both terms of T = fixed + epochs × epoch: ";
    const auto& rows = scaling_.time_model;
    for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i) {
      const auto& row = rows[i];
      text += fmt::format(
          "{}{}: {} s an epoch and {}", i > 0 ? "; " : "", plural(static_cast<std::size_t>(row.ranks), "rank", "ranks"),
          with_interval(fixed(row.model.per_epoch_s, 3), row.per_epoch_ci95, 3),
          row.fixed_cut
              ? "no seconds before and beside training that show beside the noise"
              : with_interval(fixed(row.model.fixed_s, 2), row.fixed_ci95, 2) + " s before and beside training");
    }
    if (rows.size() > most_rows) text += fmt::format("; {} more are in the table below", rows.size() - most_rows);
    say(Severity::info, text + ".");
    for (const auto& row : rows) limit(row);
  }

  void limit(const TimeModelRow& row) {
    if (!row.speedup_limit) return;
    const TimeModelRow& one = scaling_.time_model[*row.one];
    std::string text = fmt::format("The speed-up of long runs on {} ranks tends to {}/{} = {}", row.ranks,
                                   fixed(one.model.per_epoch_s, 3), fixed(row.model.per_epoch_s, 3),
                                   with_interval(fixed(*row.speedup_limit, 3), row.speedup_limit_ci95, 3));
    if (!row.differences.empty())
      text += fmt::format(" (between runs that differ in {})", differences_text(row.differences));
    text += ".";
    const ScalingPoint& shortest = points_[row.points.front()];
    const bool more_fixed = row.fixed_ci95 && one.fixed_ci95 ? row.fixed_ci95->low > one.fixed_ci95->high
                                                             : row.model.fixed_s > one.model.fixed_s;
    if (shortest.speedup && *shortest.speedup < *row.speedup_limit && more_fixed) {
      text += fmt::format(
          " The {} s that the {}-rank program spends before and beside training, against {} s on 1 rank, explain "
          "why the run of {} shows only {}.",
          fixed(row.model.fixed_s, row.model.fixed_s >= 10 ? 0 : 1), row.ranks,
          fixed(one.model.fixed_s, one.model.fixed_s >= 10 ? 0 : 1), work_text(shortest), fixed(*shortest.speedup, 2));
    }
    out_.say("long runs", Severity::info, std::move(text));
  }

  void accuracy(const ScalingPoint& point) {
    if (!point.baseline || point.ranks == 1 || !point.accuracy || !point.speedup) return;
    const ScalingPoint& one = points_[*point.baseline];
    if (!one.accuracy) return;
    const double lost = *one.accuracy - *point.accuracy;
    const auto chance = accuracy_by_chance(one, point);
    if (lost > chance.value_or(0.01) && *point.speedup > 1 && point.verdict != Verdict::undecided) {
      out_.say(
          "accuracy", Severity::warning,
          fmt::format("Speed bought with accuracy: {} ranks are {} times as fast{} but reach {} where 1 rank reaches "
                      "{}{}. More ranks make a larger batch: a learning rate that grows with it, and warm-up, "
                      "usually win it back.",
                      point.ranks, fixed(*point.speedup, 2),
                      point.verdict == Verdict::unknown ? " in the runs measured" : "", percent(*point.accuracy),
                      percent(*one.accuracy),
                      chance ? fmt::format(", more than the {} points that the choice of test images explains (95 %)",
                                           fixed(100 * *chance, 1))
                             : ""));
    }
    if (one.seconds_to_accuracy && point.seconds_to_accuracy) {
      out_.say("target", Severity::info,
               fmt::format("To the target accuracy {} ranks need {}, 1 rank {}: a ratio of {}, without an interval.",
                           point.ranks, seconds(*point.seconds_to_accuracy), seconds(*one.seconds_to_accuracy),
                           fixed(*one.seconds_to_accuracy / *point.seconds_to_accuracy, 2)));
    } else if (one.seconds_to_accuracy) {
      out_.say("target", Severity::warning,
               fmt::format("The target accuracy that 1 rank reaches in {} is never reached by {} ranks.",
                           seconds(*one.seconds_to_accuracy), point.ranks));
    }
  }

  const Report& report_;
  const Scaling& scaling_;
  const std::vector<ScalingPoint>& points_;
  SentenceList out_;
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
