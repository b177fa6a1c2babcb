// SPDX-License-Identifier: Apache-2.0
// Which law describes a series best, by cross-validation, and what it predicts for more ranks.
#include <algorithm>
#include <limits>
#include <numeric>

#include "analysis/scaling/fitting.h"
#include "analysis/scaling/grouping.h"
#include "analysis/scaling/law_fit.h"

namespace paceline::analysis {
namespace law_choice_parts {

using Which = std::vector<std::size_t>;

LawChoice::Prediction predict(const std::vector<const LawFit*>& laws, const std::vector<const LawFit*>& possible,
                              int ranks) {
  LawChoice::Prediction prediction{.ranks = ranks, .speedup = 1, .ci95 = {}};
  const LawFit& chosen = *laws.front();
  prediction.speedup = chosen.estimate(chosen.speedup(ranks)).value_or(1);
  prediction.ci95 = chosen.interval(chosen.speedup(ranks));
  for (const LawFit* other : laws) {
    const auto of = prediction.ci95 ? other->interval(other->speedup(ranks)) : std::nullopt;
    if (!of) continue;
    prediction.ci95 = Interval{std::min(prediction.ci95->low, of->low), std::max(prediction.ci95->high, of->high)};
  }
  if (!prediction.ci95) return prediction;
  for (const LawFit* larger : possible) {
    if (larger->parameters() <= chosen.parameters()) continue;
    const auto of = larger->interval(larger->speedup(ranks));
    if (of && of->low < prediction.at_least.value_or(prediction.ci95->low)) prediction.at_least = of->low;
  }
  return prediction;
}

// The laws that explain the points of a series, the chosen one first; nothing for too few rank counts.
LawChoice choice_among(const std::vector<LawFit>& laws, const LogTimes& times, std::span<const int> counts,
                       double error_rate) {
  LawChoice choice;
  const bool noise_is_known = have_interval(times.spreads);
  std::vector<const LawFit*> left;
  for (const LawFit& law : laws) {
    if (noise_is_known && times.logs.size() >= 3 && law.is_misfit(error_rate)) {
      choice.refused.push_back(law.law());
    } else {
      left.push_back(&law);
    }
  }
  if (counts.size() < fewest_for_choice) return choice;
  const LawFit* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const LawFit* law : left) {
    const auto error = law->left_out_error();
    if (!error) continue;
    choice.errors.push_back({law->law(), *error});
    constexpr double rounding = 1e-6;  // laws with fewer parameters come first and win a tie
    if (*error < least - rounding) least = *error, best = law;
  }
  if (best == nullptr) return choice;
  std::vector<const LawFit*> as_good = {best};
  if (noise_is_known) {
    // A law counts as good as the best one where chance explains the difference of their squares. The simplest of these
    // is chosen, and those that are as simple or simpler than the best one have a say in the interval.
    double variance = 0, degrees = 0;
    for (const Spread* spread : times.spreads) {
      variance += spread->variance / static_cast<double>(times.spreads.size());
      degrees += spread->degrees;
    }
    const double t = t_quantile_two_sided(0.05, degrees);
    for (const LawFit* law : left) {
      const bool explains = law->squares() - best->squares() <= t * t * variance;
      if (law != best && explains && law->parameters() <= best->parameters()) as_good.push_back(law);
    }
    std::ranges::stable_sort(as_good, {}, &LawFit::parameters);
  }
  choice.chosen = as_good.front()->law();
  const int most = counts.back();
  for (const int ranks : {2 * most, 4 * most}) choice.predictions.push_back(predict(as_good, left, ranks));
  return choice;
}

// The points of the series, then those of the same series with other numbers of epochs.
Which with_other_lengths(const std::vector<ScalingPoint>& points, const Which& series) {
  Which all = series;
  const ScalingPoint& first = points[series.back()];
  if (!(first.epochs > 0)) return all;
  for (std::size_t p = 0; p < points.size(); ++p) {
    const ScalingPoint& point = points[p];
    if (!(point.epochs > 0) || !(point.seconds > 0) || point.work == first.work) continue;
    const bool same_epoch = equal_within_1_percent(point.images / point.epochs, first.images / first.epochs);
    const bool same_series =
        point.ranks == 1 ? point.series == points[series.front()].series : point.series == first.series;
    if (same_epoch && same_series) all.push_back(p);
  }
  return all;
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

bool LawChoice::refuses(Law law) const { return std::ranges::find(refused, law) != refused.end(); }

void choose_laws(Scaling& scaling) {
  using namespace law_choice_parts;
  const auto& points = scaling.points;
  const double error_rate = corrected(2 * (scaling.fits.size() + scaling.weak.size()), refusal_error_rate);
  const auto choose = [&](const Which& series, std::initializer_list<Law> laws) {
    Which predicted(series.size() - 1);
    std::iota(predicted.begin(), predicted.end(), std::size_t{1});
    std::vector<int> counts;
    for (const std::size_t p : series) counts.push_back(points[p].ranks);
    std::ranges::sort(counts);
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    std::vector<LawFit> fits;
    const Which all_lengths = with_other_lengths(points, series);
    for (const Law law : laws) {
      if (law == Law::fixed_epochs && all_lengths.size() == series.size()) continue;  // one length does not divide them
      fits.emplace_back(law, points, law == Law::fixed_epochs ? all_lengths : series, predicted);
    }
    return choice_among(fits, log_times(points, series), counts, error_rate);
  };
  for (AmdahlFit& fit : scaling.fits) {
    fit.choice = choose(fit.points, {Law::amdahl, Law::fixed_epochs, Law::logarithmic, Law::usl});
    fit.misfit = fit.choice.refuses(Law::amdahl);
    if (fit.choice.refuses(Law::usl)) {
      fit.usl.reset(), fit.sigma_ci95.reset(), fit.kappa_ci95.reset(), fit.peak_ci95.reset();
    }
  }
  for (GustafsonFit& fit : scaling.weak) {
    fit.choice = choose(fit.points, {Law::gustafson, Law::logarithmic, Law::usl});
    fit.misfit = fit.choice.refuses(Law::gustafson);
  }
  if (scaling.speedup_limit || scaling.fits.empty()) return;
  const AmdahlFit& best = scaling.fits.front();
  if (best.choice.chosen == Law::usl) add_usl_limit(scaling, best);
}

}  // namespace paceline::analysis
