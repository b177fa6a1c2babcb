// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/scaling.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "analysis/scaling/fitting.h"
#include "analysis/scaling/grouping.h"

namespace paceline::analysis {
namespace {

// If no 1-rank run has the same series, the nearest of at most this many is taken.
constexpr std::size_t most_candidates = 200;

bool differ_in_work(const std::vector<Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(), [](const auto& d) { return is_work_column(d.column); });
}

// The 1-rank points by key, and by key and series.
class OneRankPoints {
 public:
  void add(const std::vector<ScalingPoint>& points, std::size_t p, std::size_t key) {
    by_key_[key].push_back(p);
    by_series_[key].try_emplace(series_key(points[p].series, true), p);
  }

  struct Match {
    std::size_t point = 0;
    std::vector<Difference> differences;
  };
  // The point whose series differs from that of point p in the fewest columns.
  std::optional<Match> nearest(const std::vector<ScalingPoint>& points, std::size_t p, std::size_t key) const {
    const auto group = by_key_.find(key);
    if (group == by_key_.end()) return std::nullopt;
    const auto& series = by_series_.at(key);
    if (const auto same = series.find(series_key(points[p].series, true)); same != series.end()) {
      return Match{same->second, differences_between(points[same->second], points[p])};
    }
    std::optional<Match> best;
    const std::size_t count = std::min(group->second.size(), most_candidates);
    const auto cost = [](const std::vector<Difference>& d) { return d.size() + (differ_in_work(d) ? 100 : 0); };
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t candidate = group->second[i];
      auto differences = differences_between(points[candidate], points[p]);
      if (!best || cost(differences) < cost(best->differences)) best = Match{candidate, std::move(differences)};
      if (cost(best->differences) <= 1) break;  // an equal series would have been found
    }
    return best;
  }

 private:
  std::unordered_map<std::size_t, std::vector<std::size_t>> by_key_;
  std::unordered_map<std::size_t, std::unordered_map<std::string, std::size_t>> by_series_;
};

double speedup_of(std::span<const double> logs) { return std::exp(logs[0] - logs[1]); }

template <class Function>
std::optional<Interval> mapped(const std::optional<Interval>& interval, Function&& function) {
  if (!interval) return std::nullopt;
  const double a = function(interval->low), b = function(interval->high);
  return Interval{std::min(a, b), std::max(a, b)};
}

void compare_with_one_rank(std::vector<ScalingPoint>& points) {
  OneRankPoints one_rank;
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (points[p].ranks == 1) one_rank.add(points, p, points[p].work);
  }
  std::vector<std::size_t> compared;  // with an interval
  for (std::size_t p = 0; p < points.size(); ++p) {
    auto& point = points[p];
    if (point.ranks == 1) {
      point.baseline = p;
    } else if (auto match = one_rank.nearest(points, p, point.work)) {
      if (differ_in_work(match->differences)) {
        point.other_work = std::move(match->differences);
      } else {
        point.baseline = match->point;
        point.differences = std::move(match->differences);
      }
    }
    if (!point.baseline || points[*point.baseline].throughput <= 0 || point.throughput <= 0) {
      point.baseline.reset();
      continue;
    }
    const double ranks = point.ranks;
    point.speedup = point.throughput / points[*point.baseline].throughput;
    point.efficiency = *point.speedup / ranks;
    if (point.ranks == 1) continue;
    point.karp_flatt = karp_flatt(*point.speedup, ranks);
    const std::size_t both[] = {*point.baseline, p};
    const auto times = log_times(points, both);
    point.speedup_ci95 = interval_of(times.logs, times.spreads, speedup_of);
    point.efficiency_ci95 = mapped(point.speedup_ci95, [&](double s) { return s / ranks; });
    point.karp_flatt_ci95 = mapped(point.speedup_ci95, [&](double s) { return karp_flatt(s, ranks); });
    if (point.speedup_ci95) compared.push_back(p);
  }
  for (const std::size_t p : compared) {
    const std::size_t both[] = {*points[p].baseline, p};
    const auto times = log_times(points, both);
    const auto corrected_interval = interval_of(times.logs, times.spreads, speedup_of, corrected(compared.size()));
    points[p].verdict = verdict_of(corrected_interval);
    points[p].above_ranks = corrected_interval && corrected_interval->low > points[p].ranks;
  }
}

// Weak scaling: compares points without a run of equal work with one rank at as many images per rank.
void compare_with_one_ranks_share(std::vector<ScalingPoint>& points) {
  std::vector<double> share;
  for (const auto& point : points) share.push_back(point.images / point.ranks);
  const auto share_class = classes_of(share);
  OneRankPoints one_rank;
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (points[p].ranks == 1 && points[p].images > 0) one_rank.add(points, p, share_class[p]);
  }
  for (std::size_t p = 0; p < points.size(); ++p) {
    auto& point = points[p];
    if (point.ranks == 1 || point.baseline || point.images <= 0 || point.seconds <= 0) continue;
    auto match = one_rank.nearest(points, p, share_class[p]);
    if (!match || differ_in_work(match->differences) || points[match->point].seconds <= 0) continue;
    point.weak_baseline = match->point;
    point.differences = std::move(match->differences);
    point.other_work.clear();
    const double ranks = point.ranks;
    point.scaled_speedup = point.throughput / points[match->point].throughput;
    point.weak_efficiency = *point.scaled_speedup / ranks;
    const std::size_t both[] = {match->point, p};
    const auto times = log_times(points, both);
    point.scaled_speedup_ci95 = interval_of(times.logs, times.spreads, speedup_of);
    point.weak_efficiency_ci95 = mapped(point.scaled_speedup_ci95, [&](double s) { return s / ranks; });
  }
}

// Compares points of equal ranks and work with the first of them that trains the same model on the same data.
void compare_equal_ranks(Scaling& scaling) {
  const auto& points = scaling.points;
  for (std::size_t first = 0; first < points.size();) {
    std::size_t end = first + 1;
    while (end < points.size() && points[end].work == points[first].work && points[end].ranks == points[first].ranks) {
      ++end;
    }
    // The reference is the run that was given first.
    std::vector<std::size_t> given;
    for (std::size_t p = first; p < end; ++p) given.push_back(p);
    std::sort(given.begin(), given.end(),
              [&](std::size_t a, std::size_t b) { return points[a].runs.front() < points[b].runs.front(); });
    std::map<std::string, std::size_t> references;  // by the columns that define the work
    for (const std::size_t p : given) {
      Columns work;
      for (const auto& [column, value] : points[p].series) {
        if (is_work_column(column)) work.emplace(column, value);
      }
      const auto [reference, added] = references.try_emplace(series_key(work, false), p);
      if (added) continue;
      Comparison comparison;
      comparison.reference = reference->second;
      comparison.other = p;
      if (points[comparison.reference].seconds <= 0 || points[p].seconds <= 0) continue;
      comparison.differences = differences_between(points[comparison.reference], points[p]);
      comparison.ratio = std::exp(log_times(points, std::span(&comparison.reference, 1)).logs[0] -
                                  log_times(points, std::span(&p, 1)).logs[0]);
      scaling.comparisons.push_back(std::move(comparison));
    }
    first = end;
  }
  std::size_t with_interval = 0;
  for (auto& comparison : scaling.comparisons) {
    const std::size_t both[] = {comparison.reference, comparison.other};
    const auto times = log_times(points, both);
    comparison.ci95 = interval_of(times.logs, times.spreads, speedup_of);
    with_interval += comparison.ci95.has_value();
  }
  for (auto& comparison : scaling.comparisons) {
    if (!comparison.ci95) continue;
    const std::size_t both[] = {comparison.reference, comparison.other};
    const auto times = log_times(points, both);
    comparison.verdict = verdict_of(interval_of(times.logs, times.spreads, speedup_of, corrected(with_interval)));
  }
}

}  // namespace

LogTimes log_times(const std::vector<ScalingPoint>& points, std::span<const std::size_t> which) {
  LogTimes times;
  for (const std::size_t p : which) {
    times.logs.push_back(std::log(points[p].seconds) - (points[p].images > 0 ? std::log(points[p].images) : 0));
    times.spreads.push_back(&points[p].spread);
  }
  return times;
}

Verdict verdict_of(const std::optional<Interval>& interval) {
  if (!interval) return Verdict::unknown;
  if (interval->low > 1) return Verdict::faster;
  return interval->high < 1 ? Verdict::slower : Verdict::undecided;
}

Scaling scaling_of(const std::vector<ScalingRun>& runs, const ScalingOptions& options) {
  Scaling scaling;
  group_runs(scaling, runs, options);
  compare_with_one_rank(scaling.points);
  compare_with_one_ranks_share(scaling.points);
  compare_equal_ranks(scaling);
  std::set<int> ranks;
  for (const auto& point : scaling.points) ranks.insert(point.ranks);
  scaling.rank_counts = static_cast<int>(ranks.size());
  fit_laws(scaling);
  fit_weak_scaling(scaling);
  fit_time_models(scaling);
  choose_laws(scaling);
  if (!scaling.speedup_limit && !scaling.limit_from_usl && !scaling.fits.empty()) {
    // A share that may be 0 bounds nothing. Without an interval, a share below a thousandth counts as that.
    const AmdahlFit& fit = scaling.fits.front();
    if (!fit.misfit && (fit.ci95 ? fit.limit_ci95.has_value() : fit.serial_fraction > 1e-3)) {
      scaling.speedup_limit = 1 / fit.serial_fraction;
      scaling.speedup_limit_ci95 = fit.limit_ci95;
    }
  }
  return scaling;
}

}  // namespace paceline::analysis
