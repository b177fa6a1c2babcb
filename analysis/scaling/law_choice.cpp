// Which law describes a series best, by cross-validation, and what it predicts for more ranks.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "analysis/scaling/fitting.h"
#include "analysis/scaling/grouping.h"

namespace paceline::analysis {
namespace law_choice_parts {

using Which = std::vector<std::size_t>;

// Points whose times are given as logarithms of seconds for each image.
struct Sample {
  const std::vector<ScalingPoint>* points = nullptr;
  Which which;                  // [0] is the 1-rank point
  std::vector<std::size_t> of;  // positions in `which` that are predicted: those of the series above 1 rank
  double ranks(std::size_t i) const { return (*points)[which[i]].ranks; }
};

// The logarithm of T(1)/T(N) for the work of the series, from the logarithms of times of the sample without the rank
// count `without` (0: with all). Nothing if the points that are left do not determine the law.
using Model = std::function<std::optional<double>(const Sample&, std::span<const double> logs, double without,
                                                  double ranks, bool bounded)>;

std::vector<SpeedupPoint> speedups_without(const Sample& sample, std::span<const double> logs, double without) {
  std::vector<SpeedupPoint> speedups;
  for (const std::size_t i : sample.of) {
    if (sample.ranks(i) != without) speedups.push_back({sample.ranks(i), std::exp(logs[0] - logs[i])});
  }
  return speedups;
}

std::optional<double> logarithm(double speedup) {
  return speedup > 0 && std::isfinite(speedup) ? std::optional(std::log(speedup)) : std::nullopt;
}

std::optional<double> amdahl_model(const Sample& sample, std::span<const double> logs, double without, double ranks,
                                   bool bounded) {
  const auto speedups = speedups_without(sample, logs, without);
  if (speedups.empty()) return std::nullopt;
  return logarithm(amdahl_speedup(bounded ? fit_amdahl(speedups) : fit_amdahl_unbounded(speedups), ranks));
}

std::optional<double> usl_model(const Sample& sample, std::span<const double> logs, double without, double ranks,
                                bool bounded) {
  const auto speedups = speedups_without(sample, logs, without);
  if (speedups.size() < 2) return std::nullopt;
  return logarithm((bounded ? fit_usl(speedups) : fit_usl_unbounded(speedups)).capacity(ranks));
}

std::optional<double> gustafson_model(const Sample& sample, std::span<const double> logs, double without, double ranks,
                                      bool bounded) {
  const auto speedups = speedups_without(sample, logs, without);
  if (speedups.empty()) return std::nullopt;
  return logarithm(gustafson_speedup(bounded ? fit_gustafson(speedups) : fit_gustafson_unbounded(speedups), ranks));
}

// T = fixed + epochs × epoch/N: the fixed seconds stay, and the epochs are divided. By least squares of
// relative errors through runs of all lengths.
std::optional<double> fixed_epochs_model(const Sample& sample, std::span<const double> logs, double without,
                                         double ranks, bool bounded) {
  double ff = 0, fe = 0, ee = 0, ft = 0, et = 0;
  double least = INFINITY, most = 0;  // epochs
  for (std::size_t i = 0; i < sample.which.size(); ++i) {
    const ScalingPoint& point = (*sample.points)[sample.which[i]];
    if (sample.ranks(i) == without) continue;
    least = std::min(least, point.epochs), most = std::max(most, point.epochs);
    const double seconds = std::exp(logs[i]) * point.images;
    const double f = 1 / seconds, e = point.epochs / point.ranks / seconds;
    ff += f * f, fe += f * e, ee += e * e, ft += f, et += e;
  }
  if (!(most > 1.01 * least)) return std::nullopt;
  const double determinant = ff * ee - fe * fe;
  if (!(determinant > 1e-9 * ff * ee)) return std::nullopt;
  double fixed = (ft * ee - et * fe) / determinant, epoch = (et * ff - ft * fe) / determinant;
  if (bounded && fixed < 0) fixed = 0, epoch = et / ee;
  if (bounded && epoch < 0) return std::nullopt;
  const double epochs = (*sample.points)[sample.which[sample.of.front()]].epochs;
  return logarithm((fixed + epochs * epoch) / (fixed + epochs * epoch / ranks));
}

struct Candidate {
  Law law;
  Model model;
};

// The root mean square error over the left-out rank counts; nothing if one of them cannot be predicted.
std::optional<double> left_out_error(const Sample& sample, std::span<const double> logs, const Model& model) {
  double squares = 0;
  for (const std::size_t i : sample.of) {
    const auto predicted = model(sample, logs, sample.ranks(i), sample.ranks(i), true);
    if (!predicted) return std::nullopt;
    // The law gives a speed-up; the measured 1-rank time turns it into a time.
    squares += std::pow(logs[0] - *predicted - logs[i], 2);
  }
  return std::sqrt(squares / static_cast<double>(sample.of.size()));
}

LawChoice::Prediction predict(const Sample& sample, const LogTimes& times, const Model& model, int ranks) {
  LawChoice::Prediction prediction{.ranks = ranks, .speedup = 1, .ci95 = {}};
  prediction.speedup = std::exp(model(sample, times.logs, 0, ranks, true).value_or(0));
  const auto interval = interval_of(times.logs, times.spreads, [&](std::span<const double> logs) {
    return model(sample, logs, 0, ranks, false).value_or(NAN);
  });
  // Bounds such as s >= 0 mean that N ranks are at most N times as fast.
  if (interval && interval->low < std::log(ranks)) {
    prediction.ci95 = Interval{std::exp(interval->low), std::min<double>(ranks, std::exp(interval->high))};
  }
  return prediction;
}

LawChoice choice_among(const Sample& sample, std::span<const Candidate> candidates) {
  LawChoice choice;
  std::set<double> counts;
  for (const std::size_t i : sample.of) counts.insert(sample.ranks(i));
  if (counts.size() + 1 < fewest_for_choice) return choice;
  const LogTimes times = log_times(*sample.points, sample.which);
  const Candidate* best = nullptr;
  double least = INFINITY;
  for (const Candidate& candidate : candidates) {
    const auto error = left_out_error(sample, times.logs, candidate.model);
    if (!error) continue;
    choice.errors.push_back({candidate.law, *error});
    constexpr double rounding = 1e-6;  // laws with fewer parameters come first and win a tie
    if (*error < least - rounding) least = *error, best = &candidate;
  }
  if (best == nullptr) return choice;
  choice.chosen = best->law;
  const int most = static_cast<int>(*counts.rbegin());
  for (const int ranks : {2 * most, 4 * most}) {
    choice.predictions.push_back(predict(sample, times, best->model, ranks));
  }
  return choice;
}

// The points of the series, then those of the same series with other numbers of epochs.
Sample sample_of(const std::vector<ScalingPoint>& points, const Which& series) {
  Sample sample{.points = &points, .which = series, .of = {}};
  for (std::size_t i = 1; i < series.size(); ++i) sample.of.push_back(i);
  const ScalingPoint& first = points[series.back()];
  if (!(first.epochs > 0)) return sample;
  for (std::size_t p = 0; p < points.size(); ++p) {
    const ScalingPoint& point = points[p];
    if (!(point.epochs > 0) || !(point.seconds > 0) || point.work == first.work) continue;
    const bool same_epoch = equal_within_1_percent(point.images / point.epochs, first.images / first.epochs);
    const bool same_series =
        point.ranks == 1 ? point.series == points[series.front()].series : point.series == first.series;
    if (same_epoch && same_series) sample.which.push_back(p);
  }
  return sample;
}

// The highest speed-up that the USL allows: at its peak, or 1/σ without one. Nothing where the runs do not bound it.
void add_usl_limit(Scaling& scaling, const AmdahlFit& fit) {
  scaling.limit_from_usl = true;
  if (!fit.usl) return;
  const double kappa = fit.usl->kappa, sigma = fit.usl->sigma;
  const bool may_be_zero = fit.kappa_ci95 && fit.kappa_ci95->low <= 0;
  if (kappa > 0 && !may_be_zero) scaling.speedup_limit = fit.usl->capacity(std::max(1.0, fit.usl->peak_ranks()));
  if (kappa <= 0 && sigma > 1e-3 && !fit.sigma_ci95) scaling.speedup_limit = 1 / sigma;
}

}  // namespace law_choice_parts

void choose_laws(Scaling& scaling) {
  using namespace law_choice_parts;
  for (AmdahlFit& fit : scaling.fits) {
    std::vector<Candidate> candidates;
    if (!fit.misfit) candidates.push_back({Law::amdahl, amdahl_model});
    candidates.push_back({Law::fixed_epochs, fixed_epochs_model});
    candidates.push_back({Law::usl, usl_model});
    Sample sample = sample_of(scaling.points, fit.points);
    fit.choice = choice_among(sample, candidates);
  }
  for (GustafsonFit& fit : scaling.weak) {
    const Candidate candidates[] = {{Law::gustafson, gustafson_model}, {Law::usl, usl_model}};
    Sample sample{.points = &scaling.points, .which = fit.points, .of = {}};
    for (std::size_t i = 1; i < fit.points.size(); ++i) sample.of.push_back(i);
    fit.choice = choice_among(sample, candidates);
  }
  if (scaling.speedup_limit || scaling.fits.empty()) return;
  const AmdahlFit& best = scaling.fits.front();
  if (best.choice.chosen == Law::usl) add_usl_limit(scaling, best);
}

}  // namespace paceline::analysis
