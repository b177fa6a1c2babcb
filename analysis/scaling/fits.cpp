// SPDX-License-Identifier: Apache-2.0
// The laws through the points of one series.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "analysis/scaling/fitting.h"
#include "analysis/scaling/grouping.h"
#include "analysis/scaling/law_fit.h"

namespace paceline::analysis {
namespace {

using Which = std::vector<std::size_t>;

// The noise that repeats of a run are assumed to have if it is not known. Published repeats differ by 0.1 to
// 1.3 % (docs/metrics.md).
constexpr double assumed_noise = 0.02;

std::size_t count_ranks(const std::vector<ScalingPoint>& points, std::span<const std::size_t> which) {
  std::set<int> ranks;
  for (const std::size_t p : which) ranks.insert(points[p].ranks);
  return ranks.size();
}

// The point at which the curve with the serial share s is furthest from the measured speed-up, relative to it.
std::pair<std::size_t, double> worst_miss(const std::vector<ScalingPoint>& points, std::span<const std::size_t> which,
                                          double s) {
  std::pair<std::size_t, double> worst{which.front(), 0};
  for (const std::size_t p : which) {
    if (!points[p].speedup) continue;
    const double miss = std::abs(amdahl_speedup(s, points[p].ranks) / *points[p].speedup - 1);
    if (miss > worst.second) worst = {p, miss};
  }
  return worst;
}

// The points of one series and their times. [0] is the 1-rank point.
struct Series {
  const std::vector<ScalingPoint>& points;
  const Which& which;
  LogTimes times;
};

// The chance that a value with this error is as far from 0 or further.
double chance_of(const Estimate& estimate) {
  if (!(estimate.error > 1e-12) || !std::isfinite(estimate.error)) return 1;
  return t_two_sided(estimate.value / estimate.error, estimate.degrees);
}

// Whether some point took longer than both its neighbours allow. Any sum of terms c·N^a with c ≥ 0 (serial and divided
// work, contention, coherency) is convex in log N and log T (S. Boyd, L. Vandenberghe, Convex Optimization, 2004,
// section 4.5), so no point of one program may lie above the line between two others, but for noise.
bool breaks_convexity(const Series& series, const Which& kept, double error_rate) {
  if (kept.size() < 3) return false;
  for (std::size_t i = 1; i + 1 < kept.size(); ++i) {
    const auto log_ranks = [&](std::size_t k) { return std::log(series.points[series.which[kept[k]]].ranks); };
    const double share = (log_ranks(i + 1) - log_ranks(i)) / (log_ranks(i + 1) - log_ranks(i - 1));
    const auto above = estimate_of(series.times.logs, series.times.spreads, [&](std::span<const double> logs) {
      return logs[kept[i]] - share * logs[kept[i - 1]] - (1 - share) * logs[kept[i + 1]];
    });
    // One-sided, and corrected for the number of points that have two neighbours.
    const double limit = 2 * error_rate / static_cast<double>(kept.size() - 2);
    if (above.value > 0 && chance_of(above) < limit) return true;
  }
  return false;
}

// The only point whose removal makes the times convex in the number of ranks, as every law requires. Returns nothing
// for fewer than four rank counts, because with three any of them could be the wrong one.
std::optional<std::size_t> foreign_point(const Series& series, double error_rate) {
  Which all;
  for (std::size_t i = 0; i < series.which.size(); ++i) all.push_back(i);
  if (all.size() < 4 || !breaks_convexity(series, all, error_rate)) return std::nullopt;
  std::optional<std::size_t> foreign;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Which others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (breaks_convexity(series, others, 0.05)) continue;
    if (foreign) return std::nullopt;
    foreign = series.which[i];
  }
  return foreign;
}

AmdahlFit fit_of(const std::vector<ScalingPoint>& points, Which which) {
  AmdahlFit fit;
  Which predicted(which.size() - 1);
  std::iota(predicted.begin(), predicted.end(), std::size_t{1});
  const LawFit amdahl(Law::amdahl, points, which, predicted);
  fit.serial_fraction = amdahl.estimate(LawFit::share()).value_or(0);
  fit.ci95 = amdahl.interval(LawFit::share());
  if (fit.ci95 && fit.ci95->low > 1e-6) fit.limit_ci95 = Interval{1 / fit.ci95->high, 1 / fit.ci95->low};
  const std::size_t counts = count_ranks(points, which);
  if (counts >= 3) {
    const LawFit usl(Law::usl, points, which, predicted);
    fit.usl = Usl{usl.estimate(LawFit::share()).value_or(0), usl.estimate(LawFit::growth()).value_or(0)};
    fit.usl_weak = counts < 6;
    fit.sigma_ci95 = usl.interval(LawFit::share());
    fit.kappa_ci95 = usl.interval(LawFit::growth());
    if (fit.kappa_ci95 && fit.kappa_ci95->low > 0) {
      if (const auto squared = usl.interval(LawFit::peak_squared())) {
        fit.peak_ci95 = Interval{std::sqrt(squared->low), std::sqrt(squared->high)};
      }
    }
  }
  std::tie(fit.worst_point, fit.worst_miss) = worst_miss(points, which, fit.serial_fraction);
  fit.points = std::move(which);
  return fit;
}

// Whether Karp–Flatt's e falls from one point to another by more than the noise explains.
bool falls(const std::vector<ScalingPoint>& points, std::size_t before, std::size_t after, double error_rate) {
  if (*points[before].karp_flatt <= *points[after].karp_flatt) return false;
  const std::size_t which[] = {*points[before].baseline, before, *points[after].baseline, after};
  auto times = log_times(points, which);
  const Spread assumed{SpreadSource::given, assumed_noise * assumed_noise, 1e9};
  const bool known = have_interval(times.spreads);
  if (!known) std::fill(times.spreads.begin(), times.spreads.end(), &assumed);
  const bool one_baseline = which[0] == which[2];
  const auto fall = estimate_of(times.logs, times.spreads, [&](std::span<const double> logs) {
    const double second = one_baseline ? logs[0] : logs[2];
    return karp_flatt(std::exp(logs[0] - logs[1]), points[before].ranks) -
           karp_flatt(std::exp(second - logs[3]), points[after].ranks);
  });
  return fall.error > 0 && t_two_sided(fall.value / fall.error, fall.degrees) < error_rate;
}

RefusedFit refusal_of(const std::vector<ScalingPoint>& points, Which which) {
  RefusedFit refused;
  std::set<std::string> columns;
  std::optional<std::size_t> before;
  for (const std::size_t p : which) {
    for (const auto& difference : points[p].differences) columns.insert(difference.column);
    if (points[p].ranks == 1) continue;
    if (before) {
      for (const auto& difference : differences_between(points[*before], points[p])) columns.insert(difference.column);
      if (!refused.stranger && points[*before].ranks < points[p].ranks &&
          falls(points, *before, p, corrected(which.size(), refusal_error_rate))) {
        refused.karp_flatt_falls = true;
        refused.stranger = p;
      }
    }
    before = p;
  }
  refused.columns.assign(columns.begin(), columns.end());
  std::vector<SpeedupPoint> measured;
  for (const std::size_t p : which) {
    if (points[p].ranks > 1) measured.push_back({static_cast<double>(points[p].ranks), *points[p].speedup});
  }
  refused.serial_fraction = fit_amdahl(measured);
  measured.push_back({1, 1});
  refused.serial_fraction_free_start = fit_amdahl_free_start(measured);
  refused.worst_point = worst_miss(points, which, refused.serial_fraction).first;
  refused.curve_speedup = amdahl_speedup(refused.serial_fraction, points[refused.worst_point].ranks);
  refused.points = std::move(which);
  return refused;
}

// The points of several ranks by series. The first point of each set is the 1-rank point of that series.
std::vector<Which> series_among(const std::vector<ScalingPoint>& points, const Which& group,
                                std::optional<std::size_t> ScalingPoint::*baseline) {
  std::map<std::pair<std::string, std::size_t>, Which> by_series;
  for (const std::size_t p : group) {
    if (points[p].ranks == 1 || !points[p].differences.empty() || !(points[p].*baseline)) continue;
    Which& which = by_series[{series_key(points[p].series, false), *(points[p].*baseline)}];
    if (which.empty()) which.push_back(*(points[p].*baseline));
    which.push_back(p);
  }
  std::vector<Which> out;
  for (auto& [series, which] : by_series) out.push_back(std::move(which));
  return out;
}

}  // namespace

void fit_laws(Scaling& scaling) {
  const auto& points = scaling.points;
  for (std::size_t first = 0; first < points.size();) {
    Which group;  // equal work, compared with one rank
    const std::size_t work = points[first].work;
    for (; first < points.size() && points[first].work == work; ++first) {
      if (points[first].speedup) group.push_back(first);
    }
    std::size_t most = 1;
    for (auto& which : series_among(points, group, &ScalingPoint::baseline)) {
      most = std::max(most, count_ranks(points, which));
      scaling.fits.push_back(fit_of(points, std::move(which)));
    }
    // Only points that would give more rank counts are a reason to refuse a curve.
    Which candidates;
    std::set<std::size_t> baselines;
    for (const std::size_t p : group) {
      if (points[p].ranks > 1) baselines.insert(*points[p].baseline);
    }
    for (const std::size_t p : group) {
      if (points[p].ranks > 1 || baselines.contains(p)) candidates.push_back(p);
    }
    if (count_ranks(points, candidates) > most) scaling.refused.push_back(refusal_of(points, std::move(candidates)));
  }
  std::size_t tested = 0;
  const auto is_tested = [&](const AmdahlFit& fit) {
    return fit.points.size() >= 3 && have_interval(log_times(points, fit.points).spreads);
  };
  for (const auto& fit : scaling.fits) tested += is_tested(fit);
  for (auto& fit : scaling.fits) {
    if (!is_tested(fit)) continue;
    const Series series{points, fit.points, log_times(points, fit.points)};
    // This test and those of the laws share the error rate.
    fit.foreign = foreign_point(series, corrected(2 * tested, refusal_error_rate));
  }
  std::stable_sort(scaling.fits.begin(), scaling.fits.end(), [&](const AmdahlFit& a, const AmdahlFit& b) {
    const std::size_t ranks_a = count_ranks(points, a.points), ranks_b = count_ranks(points, b.points);
    if (ranks_a != ranks_b) return ranks_a > ranks_b;
    const auto &first_a = points[a.points.front()], &first_b = points[b.points.front()];
    return std::pair(first_a.epochs, first_a.images) > std::pair(first_b.epochs, first_b.images);
  });
}

void fit_weak_scaling(Scaling& scaling) {
  const auto& points = scaling.points;
  Which all;
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (points[p].weak_baseline) all.push_back(p);
  }
  for (auto& which : series_among(points, all, &ScalingPoint::weak_baseline)) {
    std::sort(which.begin() + 1, which.end(),
              [&](std::size_t a, std::size_t b) { return points[a].ranks < points[b].ranks; });
    GustafsonFit fit;
    Which predicted(which.size() - 1);
    std::iota(predicted.begin(), predicted.end(), std::size_t{1});
    const LawFit gustafson(Law::gustafson, points, which, predicted);
    fit.serial_fraction = gustafson.estimate(LawFit::share()).value_or(0);
    fit.ci95 = gustafson.interval(LawFit::share());
    fit.points = std::move(which);
    scaling.weak.push_back(std::move(fit));
  }
}

}  // namespace paceline::analysis
