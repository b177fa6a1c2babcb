// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/grouping.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/scaling/long_run.h"

namespace paceline::analysis {
namespace {

struct Mean {
  double sum = 0;
  std::size_t count = 0;
  void add(const std::optional<double>& value) {
    if (!value) return;
    sum += *value;
    ++count;
  }
  std::optional<double> value() const {
    return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
  }
};

// The spread within one run, from its steady iterations. Everything else of the run is taken as fixed.
Spread spread_of_iterations(const ScalingRun& run) {
  const std::size_t warmup = std::min(run.warmup, run.iteration_seconds.size());
  const auto steady = std::span(run.iteration_seconds).subspan(warmup);
  const auto mean = mean_spread(steady);
  if (!mean || run.seconds <= 0) return {SpreadSource::few_iterations, 0, 0};
  const auto n = static_cast<double>(steady.size());
  return {SpreadSource::iterations, n * n * mean->variance / (run.seconds * run.seconds), mean->degrees};
}

Spread spread_of(const std::vector<ScalingRun>& runs, const ScalingPoint& point, std::optional<double> noise) {
  const auto count = static_cast<double>(point.runs.size());
  bool equal = false;
  if (point.runs.size() >= 3) {
    double mean = 0, squares = 0;
    const auto log_time = [&](std::size_t r) {
      return std::log(runs[r].seconds) - (runs[r].images > 0 ? std::log(runs[r].images) : 0);
    };
    for (const std::size_t r : point.runs) mean += log_time(r) / count;
    for (const std::size_t r : point.runs) squares += std::pow(log_time(r) - mean, 2);
    if (squares > 1e-24 * count) return {SpreadSource::repeats, squares / (count - 1) / count, count - 1};
    equal = true;
  }
  double given = 0;  // the sum of the runs' relative variances
  for (const std::size_t r : point.runs) {
    const auto relative = runs[r].seconds_sd ? std::optional(*runs[r].seconds_sd / runs[r].seconds) : noise;
    if (!relative || *relative <= 0) {
      given = 0;
      break;
    }
    given += *relative * *relative;
  }
  if (given > 0) return {SpreadSource::given, given / (count * count), 1e9};
  if (equal) return {SpreadSource::equal_repeats, 0, 0};
  if (point.runs.size() == 2) return {SpreadSource::two_repeats, 0, 0};
  const auto& run = runs[point.runs.front()];
  if (!run.iteration_seconds.empty()) return spread_of_iterations(run);
  return {};
}

// Removes from `common` the columns in which `other` differs, and adds their names to the list.
void intersect(Columns& common, const Columns& other, std::set<std::string>& differing) {
  for (auto column = common.begin(); column != common.end();) {
    const auto found = other.find(column->first);
    if (found != other.end() && found->second == column->second) {
      ++column;
    } else {
      differing.insert(column->first);
      column = common.erase(column);
    }
  }
}

}  // namespace

const std::vector<std::string> series_columns = {"model", "data",    "image_size",   "classes", "batch",
                                                 "dtype", "program", "communicator", "updater"};

bool is_work_column(const std::string& column) {
  return column == "model" || column == "data" || column == "image_size" || column == "classes";
}

bool equal_within_1_percent(double a, double b) { return std::abs(a - b) <= 0.01 * std::max(std::abs(a), std::abs(b)); }

std::vector<std::size_t> classes_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size()), classes(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::size_t number = 0;
  double first = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double value = values[order[i]];
    if (i == 0) {
      first = value;
    } else if (!equal_within_1_percent(first, value)) {
      first = value;
      ++number;
    }
    classes[order[i]] = number;
  }
  return classes;
}

std::vector<Difference> differences_between(const ScalingPoint& from, const ScalingPoint& to) {
  std::set<std::string> columns;
  for (const auto& [column, value] : from.series) columns.insert(column);
  for (const auto& [column, value] : to.series) columns.insert(column);
  if ((from.ranks == 1) != (to.ranks == 1)) columns.erase("communicator");
  std::vector<Difference> differences;
  for (const auto& column : columns) {
    const auto a = from.series.find(column), b = to.series.find(column);
    const std::string before = a == from.series.end() ? "" : a->second, after = b == to.series.end() ? "" : b->second;
    if (before != after) differences.push_back({column, before, after});
  }
  return differences;
}

std::string series_key(const Columns& series, bool without_communicator) {
  std::string key;
  for (const auto& [column, value] : series) {
    if (value.empty() || (without_communicator && column == "communicator")) continue;
    key += column;
    key += '\0';
    key += value;
    key += '\0';
  }
  return key;
}

void group_runs(Scaling& scaling, const std::vector<ScalingRun>& runs, const ScalingOptions& options) {
  std::set<std::string> defining(series_columns.begin(), series_columns.end());
  defining.insert(options.series.begin(), options.series.end());

  std::unordered_map<std::string, std::size_t> series_numbers;
  std::vector<Columns> series;
  std::vector<std::size_t> series_of(runs.size());
  std::vector<double> epochs, images;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    Columns columns;
    for (const auto& [column, value] : runs[r].config) {
      if (defining.contains(column) && !value.empty()) columns.emplace_hint(columns.end(), column, value);
    }
    if (runs[r].ranks == 1) columns.erase("communicator");
    const auto [place, added] = series_numbers.try_emplace(series_key(columns, false), series.size());
    if (added) series.push_back(std::move(columns));
    series_of[r] = place->second;
    epochs.push_back(runs[r].epochs);
    images.push_back(runs[r].images);
  }
  const auto epoch_class = classes_of(epochs), image_class = classes_of(images);
  const auto order_of = [&](std::size_t r) {
    return std::tuple(epoch_class[r], image_class[r], runs[r].ranks, series_of[r]);
  };

  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return order_of(a) < order_of(b); });
  scaling.point_of_run.resize(runs.size());
  std::set<std::string> averaged;
  std::size_t work = 0;
  for (std::size_t at = 0; at < order.size();) {
    ScalingPoint point;
    const std::size_t first = order[at];
    if (at > 0) {
      const std::size_t before = order[at - 1];
      work += epoch_class[before] != epoch_class[first] || image_class[before] != image_class[first];
    }
    Mean mean_epochs, mean_images, mean_seconds, accuracy, seconds_to_accuracy;
    point.config = runs[first].config;
    for (; at < order.size() && order_of(order[at]) == order_of(first); ++at) {
      const std::size_t r = order[at];
      point.runs.push_back(r);
      scaling.point_of_run[r] = scaling.points.size();
      mean_epochs.add(runs[r].epochs);
      mean_images.add(runs[r].images);
      mean_seconds.add(runs[r].seconds);
      accuracy.add(runs[r].accuracy);
      seconds_to_accuracy.add(runs[r].seconds_to_accuracy);
      intersect(point.config, runs[r].config, averaged);
    }
    point.ranks = runs[first].ranks;
    point.epochs = *mean_epochs.value();
    point.images = *mean_images.value();
    point.seconds = *mean_seconds.value();
    point.throughput = point.seconds > 0 ? point.images / point.seconds : 0;
    point.accuracy = accuracy.value();
    point.seconds_to_accuracy = seconds_to_accuracy.value();
    point.series = series[series_of[first]];
    point.work = work;
    point.spread = spread_of(runs, point, options.noise);
    scaling.points.push_back(std::move(point));
  }
  for (const auto& column : averaged) {
    if (!defining.contains(column)) scaling.averaged_labels.push_back(column);
  }
}

}  // namespace paceline::analysis
