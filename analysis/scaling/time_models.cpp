// SPDX-License-Identifier: Apache-2.0
// The time of a run, T(N, epochs) = fixed(N) + epochs × epoch(N): runs of two lengths give both terms.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/scaling/fitting.h"
#include "analysis/scaling/grouping.h"

namespace paceline::analysis {
namespace {

using Which = std::vector<std::size_t>;

double images_per_epoch(const ScalingPoint& point) { return point.images / point.epochs; }

// Least squares; nothing if all runs have the same length.
std::optional<TimeModel> line_through(const std::vector<ScalingPoint>& points, const Which& which,
                                      std::span<const double> seconds) {
  const auto n = static_cast<double>(which.size());
  double mean_epochs = 0, mean_seconds = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < which.size(); ++i) {
    mean_epochs += points[which[i]].epochs / n;
    mean_seconds += seconds[i] / n;
  }
  for (std::size_t i = 0; i < which.size(); ++i) {
    const double x = points[which[i]].epochs - mean_epochs;
    xx += x * x;
    xy += x * (seconds[i] - mean_seconds);
  }
  if (xx <= 1e-4 * mean_epochs * mean_epochs) return std::nullopt;  // lengths within 1 % are one length
  return TimeModel{mean_seconds - xy / xx * mean_epochs, xy / xx};
}

// Seconds from logarithms of seconds per image.
std::vector<double> seconds_of(const std::vector<ScalingPoint>& points, const Which& which,
                               std::span<const double> logs) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const double images = points[which[i]].images;
    seconds.push_back(std::exp(logs[i]) * (images > 0 ? images : 1));
  }
  return seconds;
}

// The interval with the estimate, which bounds may have moved.
void include(std::optional<Interval>& interval, double estimate) {
  if (interval) interval = Interval{std::min(interval->low, estimate), std::max(interval->high, estimate)};
}

// Fills the model and the intervals of the row. False if longer runs did not take longer.
bool fit_row(const std::vector<ScalingPoint>& points, TimeModelRow& row) {
  const auto times = log_times(points, row.points);
  const auto model = [&](std::span<const double> logs) {
    return *line_through(points, row.points, seconds_of(points, row.points, logs));
  };
  row.model = model(times.logs);
  if (row.model.per_epoch_s <= 0) return false;
  row.per_epoch_ci95 = interval_of(times.logs, times.spreads, [&](auto logs) { return model(logs).per_epoch_s; });
  row.fixed_ci95 = interval_of(times.logs, times.spreads, [&](auto logs) { return model(logs).fixed_s; });
  if (row.per_epoch_ci95 && row.per_epoch_ci95->low <= 0) row.per_epoch_ci95.reset();
  if (row.fixed_ci95) {
    row.fixed_ci95->low = std::max(0.0, row.fixed_ci95->low);
    row.fixed_ci95->high = std::max(0.0, row.fixed_ci95->high);
  }
  if (row.model.fixed_s < 0) {
    // The best model whose fixed seconds are not below 0: a line through the origin.
    double xx = 0, xy = 0;
    for (const std::size_t p : row.points) {
      xx += points[p].epochs * points[p].epochs;
      xy += points[p].epochs * points[p].seconds;
    }
    row.fixed_cut = true;
    row.model = {0, xy / xx};
  }
  include(row.fixed_ci95, row.model.fixed_s);
  include(row.per_epoch_ci95, row.model.per_epoch_s);
  return true;
}

std::optional<Interval> limit_interval(const std::vector<ScalingPoint>& points, const TimeModelRow& one,
                                       const TimeModelRow& many) {
  Which both = one.points;
  both.insert(both.end(), many.points.begin(), many.points.end());
  const auto times = log_times(points, both);
  const std::size_t first = one.points.size();
  auto limit = interval_of(times.logs, times.spreads, [&](std::span<const double> logs) {
    const auto a = line_through(points, one.points, seconds_of(points, one.points, logs.first(first)));
    const auto b = line_through(points, many.points, seconds_of(points, many.points, logs.subspan(first)));
    return a->per_epoch_s / b->per_epoch_s;
  });
  if (limit && limit->low <= 0) limit.reset();
  return limit;
}

}  // namespace

void fit_time_models(Scaling& scaling) {
  const auto& points = scaling.points;
  std::vector<double> per_epoch(points.size());
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (points[p].epochs > 0) per_epoch[p] = images_per_epoch(points[p]);
  }
  const auto size_class = classes_of(per_epoch);
  std::map<std::tuple<std::size_t, std::string, int>, Which> groups;
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (points[p].epochs <= 0 || points[p].seconds <= 0) continue;
    groups[{size_class[p], series_key(points[p].series, false), points[p].ranks}].push_back(p);
  }
  std::vector<std::size_t> one_rank_rows;
  for (auto& [key, which] : groups) {
    std::vector<double> seconds;
    for (const std::size_t p : which) seconds.push_back(points[p].seconds);
    if (which.size() < 2 || !line_through(points, which, seconds)) continue;
    TimeModelRow row;
    row.ranks = std::get<2>(key);
    row.series = points[which.front()].series;
    row.points = std::move(which);
    if (!fit_row(points, row)) {
      scaling.no_time_model.push_back(row.ranks);
      continue;
    }
    scaling.time_model.push_back(std::move(row));
  }
  auto& rows = scaling.time_model;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  for (std::size_t r = 0; r < rows.size() && rows[r].ranks == 1; ++r) one_rank_rows.push_back(r);
  if (one_rank_rows.size() > 100) one_rank_rows.resize(100);  // bounds the search for the nearest
  for (auto& row : rows) {
    if (row.ranks == 1) continue;
    const ScalingPoint& own = points[row.points.front()];
    for (const std::size_t r : one_rank_rows) {
      const ScalingPoint& other = points[rows[r].points.front()];
      if (!equal_within_1_percent(images_per_epoch(other), images_per_epoch(own))) continue;
      auto differences = differences_between(other, own);
      const bool other_work =
          std::any_of(differences.begin(), differences.end(), [](const auto& d) { return is_work_column(d.column); });
      if (other_work || (row.one && differences.size() >= row.differences.size())) continue;
      row.one = r;
      row.differences = std::move(differences);
    }
    if (!row.one) continue;
    row.speedup_limit = rows[*row.one].model.per_epoch_s / row.model.per_epoch_s;
    row.speedup_limit_ci95 = limit_interval(points, rows[*row.one], row);
    include(row.speedup_limit_ci95, *row.speedup_limit);
    scaling.speedup_limit = row.speedup_limit;  // rows are sorted: the last is that of the largest N
    scaling.speedup_limit_ci95 = row.speedup_limit_ci95;
    scaling.limit_from_time_model = true;
  }
}

}  // namespace paceline::analysis
