#include "analysis/scaling/scaling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace paceline::analysis {
namespace {

using Config = std::map<std::string, std::string>;

bool equal_within_1_percent(double a, double b) { return std::abs(a - b) <= 0.01 * std::max(std::abs(a), std::abs(b)); }

bool equal_work(const ScalingPoint& a, const ScalingPoint& b) {
  return equal_within_1_percent(a.epochs, b.epochs) && equal_within_1_percent(a.images, b.images);
}

std::vector<Difference> differences_between(const Config& from, const Config& to) {
  std::set<std::string> columns;
  for (const auto& [column, value] : from) columns.insert(column);
  for (const auto& [column, value] : to) columns.insert(column);
  std::vector<Difference> differences;
  for (const auto& column : columns) {
    const auto a = from.find(column), b = to.find(column);
    const std::string before = a == from.end() ? "" : a->second, after = b == to.end() ? "" : b->second;
    if (before != after) differences.push_back({column, before, after});
  }
  return differences;
}

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<ScalingPoint> points_of(const std::vector<ScalingRun>& runs) {
  std::vector<ScalingPoint> points;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto& run = runs[r];
    auto same = std::find_if(points.begin(), points.end(), [&](const ScalingPoint& p) {
      return p.ranks == run.ranks && p.epochs == run.epochs && equal_within_1_percent(p.images, run.images) &&
             p.config == run.config;
    });
    if (same == points.end()) {
      ScalingPoint point;
      point.ranks = run.ranks;
      point.epochs = run.epochs;
      point.images = run.images;
      point.config = run.config;
      points.push_back(std::move(point));
      same = points.end() - 1;
    }
    same->runs.push_back(r);
  }
  for (auto& point : points) {
    std::vector<double> images, seconds, accuracy, seconds_to_accuracy;
    for (const std::size_t r : point.runs) {
      images.push_back(runs[r].images);
      seconds.push_back(runs[r].seconds);
      if (runs[r].accuracy) accuracy.push_back(*runs[r].accuracy);
      if (runs[r].seconds_to_accuracy) seconds_to_accuracy.push_back(*runs[r].seconds_to_accuracy);
    }
    point.images = *mean(images);
    point.seconds = *mean(seconds);
    point.throughput = point.seconds > 0 ? point.images / point.seconds : 0;
    point.accuracy = mean(accuracy);
    point.seconds_to_accuracy = mean(seconds_to_accuracy);
  }
  std::stable_sort(points.begin(), points.end(), [](const ScalingPoint& a, const ScalingPoint& b) {
    if (a.epochs != b.epochs) return a.epochs < b.epochs;
    if (!equal_within_1_percent(a.images, b.images)) return a.images < b.images;
    return a.ranks < b.ranks;
  });
  return points;
}

// Throughputs as they might have come out as well: resampled[b][p] for resample b and point p; `known` says which
// points have any spread to draw from.
struct Resampled {
  std::vector<std::vector<double>> throughput;
  std::vector<bool> known;
};

Resampled resample(const std::vector<ScalingRun>& runs, const std::vector<ScalingPoint>& points) {
  Resampled out;
  for (const auto& point : points) {
    const bool iterations = std::all_of(point.runs.begin(), point.runs.end(),
                                        [&](std::size_t r) { return runs[r].iteration_seconds.size() > 1; });
    out.known.push_back(point.runs.size() > 1 || iterations);
  }
  if (std::none_of(out.known.begin(), out.known.end(), [](bool known) { return known; })) return out;
  BlockResampler resampler(1);
  std::vector<double> repeat_order, drawn;
  out.throughput.assign(bootstrap_resamples, std::vector<double>(points.size()));
  for (auto& throughput : out.throughput) {
    for (std::size_t p = 0; p < points.size(); ++p) {
      const auto& repeats = points[p].runs;
      repeat_order.assign(repeats.begin(), repeats.end());
      resampler.draw(repeat_order, drawn);
      double seconds = 0, images = 0;
      for (const double repeat : drawn) {
        const auto& run = runs[static_cast<std::size_t>(repeat)];
        const double total = std::accumulate(run.iteration_seconds.begin(), run.iteration_seconds.end(), 0.0);
        seconds += run.seconds - total + resampler.draw_sum(run.iteration_seconds);
        images += run.images;
      }
      throughput[p] = images / seconds;
    }
  }
  return out;
}

template <class Statistic>
std::optional<Interval> interval_of(const Resampled& resampled, std::span<const std::size_t> points,
                                    Statistic&& value) {
  for (const std::size_t p : points) {
    if (resampled.throughput.empty() || !resampled.known[p]) return std::nullopt;
  }
  std::vector<double> values;
  for (const auto& throughput : resampled.throughput) values.push_back(value(throughput));
  return middle_95(std::move(values));
}

void compare_with_one_rank(std::vector<ScalingPoint>& points, const Resampled& resampled) {
  for (std::size_t p = 0; p < points.size(); ++p) {
    auto& point = points[p];
    for (std::size_t b = 0; b < points.size(); ++b) {
      if (points[b].ranks != 1 || !equal_work(points[b], point) || (point.ranks == 1 && b != p)) continue;
      auto differences = differences_between(points[b].config, point.config);
      if (!point.baseline || differences.size() < point.differences.size()) {
        point.baseline = b;
        point.differences = std::move(differences);
      }
    }
    if (!point.baseline || points[*point.baseline].throughput <= 0) continue;
    const std::size_t b = *point.baseline;
    const double ranks = point.ranks;
    point.speedup = point.throughput / points[b].throughput;
    point.efficiency = *point.speedup / ranks;
    if (point.ranks == 1) continue;
    point.karp_flatt = karp_flatt(*point.speedup, ranks);
    const std::size_t both[] = {b, p};
    const auto speedup = [&](const std::vector<double>& t) { return t[p] / t[b]; };
    point.speedup_ci95 = interval_of(resampled, both, speedup);
    point.efficiency_ci95 = interval_of(resampled, both, [&](const auto& t) { return speedup(t) / ranks; });
    point.karp_flatt_ci95 = interval_of(resampled, both, [&](const auto& t) { return karp_flatt(speedup(t), ranks); });
  }
}

std::size_t count_ranks(const std::vector<ScalingPoint>& points, std::span<const std::size_t> which) {
  std::set<int> ranks;
  for (const std::size_t p : which) ranks.insert(points[p].ranks);
  return ranks.size();
}

std::vector<SpeedupPoint> above_one_rank(const std::vector<ScalingPoint>& points, std::span<const std::size_t> which) {
  std::vector<SpeedupPoint> out;
  for (const std::size_t p : which) {
    if (points[p].ranks > 1 && points[p].speedup)
      out.push_back({static_cast<double>(points[p].ranks), *points[p].speedup});
  }
  return out;
}

// The point at which the curve with the serial share s lies furthest from what was measured, in shares of it.
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

AmdahlFit fit_of(const std::vector<ScalingPoint>& points, std::vector<std::size_t> which, const Resampled& resampled) {
  AmdahlFit fit;
  const auto measured = above_one_rank(points, which);
  fit.serial_fraction = fit_amdahl(measured);
  fit.ci95 = interval_of(resampled, which, [&](const std::vector<double>& t) {
    std::vector<SpeedupPoint> drawn;
    for (const std::size_t p : which) {
      if (points[p].ranks > 1) drawn.push_back({static_cast<double>(points[p].ranks), t[p] / t[*points[p].baseline]});
    }
    return fit_amdahl(drawn);
  });
  const std::size_t counts = count_ranks(points, which);
  if (counts >= 3) {
    fit.usl = fit_usl(measured);
    fit.usl_weak = counts < 6;
  }
  std::tie(fit.worst_point, fit.worst_miss) = worst_miss(points, which, fit.serial_fraction);
  fit.points = std::move(which);
  return fit;
}

RefusedFit refusal_of(const std::vector<ScalingPoint>& points, std::vector<std::size_t> which) {
  RefusedFit refused;
  std::set<std::string> columns;
  const ScalingPoint* before = nullptr;
  for (const std::size_t p : which) {
    for (const auto& difference : points[p].differences) columns.insert(difference.column);
    if (points[p].ranks == 1) continue;
    if (before != nullptr && before->ranks < points[p].ranks && *points[p].karp_flatt < 0.9 * *before->karp_flatt) {
      refused.karp_flatt_falls = true;
      if (!refused.stranger) refused.stranger = p;
    }
    before = &points[p];
  }
  refused.columns.assign(columns.begin(), columns.end());
  const auto measured = above_one_rank(points, which);
  refused.serial_fraction = fit_amdahl(measured);
  auto with_start = measured;
  with_start.push_back({1, 1});
  refused.serial_fraction_free_start = fit_amdahl_free_start(with_start);
  refused.worst_point = worst_miss(points, which, refused.serial_fraction).first;
  refused.curve_speedup = amdahl_speedup(refused.serial_fraction, points[refused.worst_point].ranks);
  refused.points = std::move(which);
  return refused;
}

void fit_laws(Scaling& scaling, const Resampled& resampled) {
  const auto& points = scaling.points;
  std::vector<bool> seen(points.size());
  for (std::size_t first = 0; first < points.size(); ++first) {
    if (seen[first]) continue;
    std::vector<std::size_t> group;  // equal work, compared with one rank
    for (std::size_t p = first; p < points.size(); ++p) {
      if (seen[p] || !equal_work(points[first], points[p])) continue;
      seen[p] = true;
      if (points[p].speedup) group.push_back(p);
    }
    std::size_t most = 1;
    std::set<Config> series;
    for (const std::size_t p : group) series.insert(points[p].config);
    for (const auto& config : series) {
      std::vector<std::size_t> which;
      for (const std::size_t p : group) {
        if (points[p].config == config) which.push_back(p);
      }
      const std::size_t counts = count_ranks(points, which);
      if (counts < 2 || points[which.front()].ranks != 1) continue;
      most = std::max(most, counts);
      scaling.fits.push_back(fit_of(points, std::move(which), resampled));
    }
    if (count_ranks(points, group) > most) scaling.refused.push_back(refusal_of(points, std::move(group)));
  }
  std::stable_sort(scaling.fits.begin(), scaling.fits.end(), [&](const AmdahlFit& a, const AmdahlFit& b) {
    const auto counts_a = count_ranks(points, a.points), counts_b = count_ranks(points, b.points);
    if (counts_a != counts_b) return counts_a > counts_b;
    return points[a.points.front()].images > points[b.points.front()].images;
  });
}

double images_per_epoch(const ScalingPoint& point) { return point.images / point.epochs; }

void fit_time_models(Scaling& scaling) {
  const auto& points = scaling.points;
  std::vector<bool> seen(points.size());
  for (std::size_t first = 0; first < points.size(); ++first) {
    if (seen[first] || points[first].epochs <= 0) continue;
    TimeModelRow row;
    row.ranks = points[first].ranks;
    row.config = points[first].config;
    std::vector<RunLength> lengths;
    for (std::size_t p = first; p < points.size(); ++p) {
      if (seen[p] || points[p].ranks != row.ranks || points[p].config != row.config || points[p].epochs <= 0 ||
          !equal_within_1_percent(images_per_epoch(points[p]), images_per_epoch(points[first]))) {
        continue;
      }
      seen[p] = true;
      row.points.push_back(p);
      lengths.push_back({points[p].epochs, points[p].seconds});
    }
    if (const auto model = fit_time_model(lengths)) {
      row.model = *model;
      scaling.time_model.push_back(std::move(row));
    }
  }
  auto& rows = scaling.time_model;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  for (auto& row : rows) {
    if (row.ranks == 1) continue;
    for (const auto& one : rows) {
      if (one.ranks != 1 || row.model.per_epoch_s <= 0 ||
          !equal_within_1_percent(images_per_epoch(points[one.points.front()]),
                                  images_per_epoch(points[row.points.front()]))) {
        continue;
      }
      auto differences = differences_between(one.config, row.config);
      if (row.speedup_limit && differences.size() >= row.differences.size()) continue;
      row.speedup_limit = one.model.per_epoch_s / row.model.per_epoch_s;
      row.differences = std::move(differences);
    }
    if (row.speedup_limit) {
      scaling.speedup_limit = row.speedup_limit;  // rows are sorted: the last is that of the largest N
      scaling.limit_from_time_model = true;
    }
  }
}

}  // namespace

Scaling scaling_of(const std::vector<ScalingRun>& runs) {
  Scaling scaling;
  scaling.points = points_of(runs);
  const Resampled resampled = resample(runs, scaling.points);
  compare_with_one_rank(scaling.points, resampled);
  std::set<int> ranks;
  for (const auto& point : scaling.points) ranks.insert(point.ranks);
  scaling.rank_counts = static_cast<int>(ranks.size());
  fit_laws(scaling, resampled);
  fit_time_models(scaling);
  if (!scaling.speedup_limit && !scaling.fits.empty() && scaling.fits.front().serial_fraction > 0) {
    scaling.speedup_limit = 1 / scaling.fits.front().serial_fraction;
  }
  return scaling;
}

}  // namespace paceline::analysis
