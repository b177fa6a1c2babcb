// Sentences about series: those that must not be joined, weak scaling, equal rank counts side by side; the headline of
// a scaling report; and what its intervals rest on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/report/findings.h"
#include "analysis/report/scaling_sentences.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

std::string ranks_word(int ranks) { return plural(static_cast<std::size_t>(ranks), "rank", "ranks"); }

// "program (chainer and chainermn)"; of several columns only their names.
std::string columns_text(const Scaling& scaling, const RefusedFit& refused) {
  std::string text = list_text(refused.columns);
  if (refused.columns.size() != 1) return text;
  std::vector<std::string> values;
  for (const std::size_t p : refused.points) {
    const auto found = scaling.points[p].series.find(refused.columns.front());
    const std::string value = found == scaling.points[p].series.end() ? "not given" : found->second;
    if (std::ranges::find(values, value) == values.end() && values.size() < 8) values.push_back(value);
  }
  return text + fmt::format(" ({})", list_text(values));
}

void refuse(const Scaling& scaling, const RefusedFit& refused, SentenceList& out) {
  const auto& points = scaling.points;
  std::string text = fmt::format("No Amdahl curve is laid through {} ranks at {}: the runs differ in {}",
                                 ranks_text(scaling, refused.points), work_text(points[refused.points.front()]),
                                 columns_text(scaling, refused));
  if (refused.stranger) {
    const auto stranger = std::ranges::find(refused.points, *refused.stranger);
    text += fmt::format(
        ", and Karp–Flatt's e falls from {} at {} ranks to {} at {}, which one program with a serial share cannot do",
        significant(*points[*(stranger - 1)].karp_flatt, 3), points[*(stranger - 1)].ranks,
        significant(*points[*stranger].karp_flatt, 3), points[*stranger].ranks);
  }
  text += ".";
  if (refused.points.size() > 2) {
    const auto& worst = points[refused.worst_point];
    text += fmt::format(
        " The curve (s ≈ {}, or {} where the speed of 1 rank is fitted too) would give S({}) = {} where {} was "
        "measured.",
        fixed(refused.serial_fraction, 2), fixed(refused.serial_fraction_free_start, 2), worst.ranks,
        fixed(refused.curve_speedup, 2), fixed(*worst.speedup, 2));
  }
  if (refused.stranger) {
    text += fmt::format(" The {}-rank run does not belong to the series.", points[*refused.stranger].ranks);
  }
  out.say("refused", Severity::warning, std::move(text));
}

void weak_point(const Scaling& scaling, const ScalingPoint& point, SentenceList& out) {
  if (!point.scaled_speedup) return;
  const ScalingPoint& one = scaling.points[*point.weak_baseline];
  std::string text = fmt::format(
      "Weak scaling: {} ranks train {} images in {} where 1 rank trains {} in {}: weak efficiency {}, scaled speed-up "
      "{}",
      point.ranks, count(point.images), seconds(point.seconds), count(one.images), seconds(one.seconds),
      point.weak_efficiency_ci95
          ? fmt::format("{} (95 %: {}–{})", percent(*point.weak_efficiency), percent(point.weak_efficiency_ci95->low),
                        percent(point.weak_efficiency_ci95->high))
          : percent(*point.weak_efficiency),
      with_interval(fixed(*point.scaled_speedup, 3), point.scaled_speedup_ci95, 3));
  if (!point.differences.empty()) {
    text += fmt::format("; the two runs differ in {}", differences_text(point.differences));
  }
  out.say("weak", Severity::info, text + ".");
}

void gustafson(const Scaling& scaling, const GustafsonFit& fit, SentenceList& out) {
  out.say("gustafson", Severity::info,
          fmt::format("Gustafson's law through {} ranks: a share of s = {} of the time on N ranks is serial{}.",
                      ranks_text(scaling, fit.points), with_interval(fixed(fit.serial_fraction, 4), fit.ci95, 4),
                      fit.points.size() == 2 ? "; two rank counts determine it, so nothing tests the law" : ""));
}

std::string values_text(const std::vector<Difference>& differences, bool to) {
  std::vector<std::string> values;
  for (const auto& d : differences) {
    const std::string& value = to ? d.to : d.from;
    values.push_back(fmt::format("{} {}", d.column, value.empty() ? "not given" : value));
  }
  return list_text(values);
}

std::string comparison_text(const Scaling& scaling, const Comparison& comparison) {
  const ScalingPoint &a = scaling.points[comparison.reference], &b = scaling.points[comparison.other];
  std::string text = fmt::format("On {} at {}, {} takes {} and {} takes {}", ranks_word(a.ranks), work_text(a),
                                 values_text(comparison.differences, true), seconds(b.seconds),
                                 values_text(comparison.differences, false), seconds(a.seconds));
  const auto ratio = [&](bool inverse) {
    const auto& ci = comparison.ci95;
    const double value = inverse ? 1 / comparison.ratio : comparison.ratio;
    if (!ci) return fixed(value, 3);
    return fmt::format("{} (95 %: {}–{})", fixed(value, 3), fixed(inverse ? 1 / ci->high : ci->low, 3),
                       fixed(inverse ? 1 / ci->low : ci->high, 3));
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
  return text +
         fmt::format(": the ratio of their speeds is {}. Whether that is more than noise is not known.", ratio(false));
}

// Points of a source of spread that take part in a comparison, as rank counts.
std::string ranks_with(const Scaling& scaling, const std::set<std::size_t>& compared, SpreadSource source) {
  std::vector<std::size_t> which;
  for (const std::size_t p : compared) {
    if (scaling.points[p].spread.source == source) which.push_back(p);
  }
  return which.empty() ? "" : ranks_text(scaling, which);
}

std::set<std::size_t> compared_points(const Scaling& scaling) {
  std::set<std::size_t> compared;
  for (std::size_t p = 0; p < scaling.points.size(); ++p) {
    const auto& point = scaling.points[p];
    if (point.karp_flatt) compared.insert({p, *point.baseline});
    if (point.weak_baseline) compared.insert({p, *point.weak_baseline});
  }
  for (const auto& comparison : scaling.comparisons) compared.insert({comparison.reference, comparison.other});
  for (const auto& row : scaling.time_model) compared.insert(row.points.begin(), row.points.end());
  return compared;
}

std::string of_differences(const std::vector<Difference>& differences) {
  std::vector<std::string> columns;
  for (const auto& difference : differences) columns.push_back(difference.column);
  return columns.empty() ? "." : fmt::format(", between runs that differ in {}.", list_text(columns));
}

std::string speed_up_text(const Scaling& scaling, const ScalingPoint& point) {
  const double s = *point.speedup;
  switch (point.verdict) {
    case Verdict::faster:
      return fmt::format("{} ranks train {} times as fast as one: an efficiency of {}", point.ranks, fixed(s, 2),
                         percent(*point.efficiency));
    case Verdict::slower:
      return fmt::format("{} ranks are slower than one: {} times its speed", point.ranks, fixed(s, 2));
    case Verdict::undecided:
      return fmt::format("{} ranks are shown to be neither faster nor slower than one: {} times its speed, 95 %: {}–{}",
                         point.ranks, fixed(s, 2), fixed(point.speedup_ci95->low, 2),
                         fixed(point.speedup_ci95->high, 2));
    case Verdict::unknown:
      break;
  }
  return fmt::format("S({}) = {} in the runs measured: {} where 1 rank took {}, an efficiency of {}", point.ranks,
                     fixed(s, 2), seconds(point.seconds), seconds(scaling.points[*point.baseline].seconds),
                     percent(*point.efficiency));
}

}  // namespace

void SentenceList::say(const char* kind, Severity severity, std::string text) {
  if (!texts_.insert(text).second) return;  // several configurations can have the same to be said of them
  if (++said_[kind] > most_sentences) {
    ++left_out_;
    return;
  }
  out_.push_back({severity, std::move(text)});
}

void SentenceList::finish() {
  if (left_out_ == 0) return;
  out_.push_back({Severity::info, fmt::format("{} of the kinds above are left out here; --format json has all figures.",
                                              plural(left_out_, "sentence", "sentences"))});
}

std::string ranks_text(const Scaling& scaling, const std::vector<std::size_t>& points) {
  constexpr std::size_t most_named = 12;
  std::set<int> ranks;
  for (const std::size_t p : points) ranks.insert(scaling.points[p].ranks);
  std::vector<std::string> names;
  for (const int n : ranks) {
    if (names.size() == most_named) {
      names.push_back(fmt::format("{} more numbers of", ranks.size() - most_named));
      break;
    }
    names.push_back(std::to_string(n));
  }
  return list_text(names);
}

std::optional<double> shown_peak(const Scaling& scaling, const AmdahlFit& fit) {
  if (!fit.usl || fit.usl->kappa <= 0) return std::nullopt;
  const double peak = fit.usl->peak_ranks();
  if (fit.peak_ci95) return peak;
  if (fit.kappa_ci95) return std::nullopt;
  int most = 1;
  for (const std::size_t p : fit.points) most = std::max(most, scaling.points[p].ranks);
  return peak >= 1 && peak <= 10.0 * most ? std::optional(peak) : std::nullopt;
}

void add_series_findings(const Report& report, SentenceList& out) {
  const Scaling& scaling = report.scaling;
  for (const auto& refused : scaling.refused) refuse(scaling, refused, out);
  for (const auto& point : scaling.points) weak_point(scaling, point, out);
  for (const auto& fit : scaling.weak) gustafson(scaling, fit, out);
  for (const auto& comparison : scaling.comparisons) {
    out.say("comparison", Severity::info, comparison_text(scaling, comparison));
  }
  if (!scaling.averaged_labels.empty()) {
    constexpr std::size_t most_named = 8;
    std::vector<std::string> labels = scaling.averaged_labels;
    if (labels.size() > most_named) labels.resize(most_named);
    out.say("labels", Severity::info,
            fmt::format("Runs that differ only in {} count as repeats and are averaged; `--series COLUMN` parts them.",
                        list_text(labels)));
  }
}

void add_noise_findings(const Report& report, SentenceList& out) {
  const Scaling& scaling = report.scaling;
  const auto compared = compared_points(scaling);
  const auto say = [&](SpreadSource source, const char* text) {
    const std::string ranks = ranks_with(scaling, compared, source);
    if (!ranks.empty()) {
      out.say("noise", Severity::info, fmt::format(fmt::runtime(text), ranks == "1" ? "1 rank" : ranks + " ranks"));
    }
  };
  say(SpreadSource::none,
      "Of {} there is one run whose iterations are not known, so no intervals can be given: repeat the runs (three or "
      "more equal rows give intervals), record them, or give their noise with --noise PERCENT.");
  say(SpreadSource::two_repeats,
      "Of {} there are two runs, which are too few for an interval: three or more give one.");
  say(SpreadSource::equal_repeats,
      "The repeats of {} are equal to the last digit. That shows rounding and no noise, so no interval is given.");
  say(SpreadSource::few_iterations,
      "The run of {} is shorter than 20 autocorrelation times of its iterations, so no interval is given: train "
      "longer, "
      "or repeat the run three times.");
  say(SpreadSource::iterations,
      "The intervals of {} come from the iterations of one run: they cover the variation within the run and know "
      "nothing "
      "of the spread between runs. Repeat each run three times to know that as well.");
  say(SpreadSource::given, "The intervals of {} rest on the noise that was given.");
  const bool within = !ranks_with(scaling, compared, SpreadSource::iterations).empty();
  const bool between = !ranks_with(scaling, compared, SpreadSource::repeats).empty() ||
                       !ranks_with(scaling, compared, SpreadSource::given).empty();
  if (within && between) {
    out.say("noise", Severity::info,
            "Between runs with repeats and runs without there is no interval: repeat the others too.");
  }
}

std::string scaling_headline(const Report& report) {
  const Scaling& scaling = report.scaling;
  if (const ScalingPoint* best = headline_point(scaling)) {
    return speed_up_text(scaling, *best) + of_differences(best->differences);
  }
  const ScalingPoint* weak = nullptr;
  for (const auto& point : scaling.points) {
    if (point.scaled_speedup && (weak == nullptr || point.ranks >= weak->ranks)) weak = &point;
  }
  if (weak != nullptr) {
    return fmt::format(
        "Weak scaling: {} ranks train {} times the images of one in {} times its time, a weak efficiency "
        "of {}{}",
        weak->ranks, weak->ranks, fixed(1 / *weak->weak_efficiency, 2), percent(*weak->weak_efficiency),
        of_differences(weak->differences));
  }
  return scaling.comparisons.empty() ? "" : comparison_text(scaling, scaling.comparisons.front());
}

}  // namespace paceline::analysis
