#include "analysis/report/build.h"

#include <algorithm>
#include <set>

#include "analysis/report/findings.h"
#include "analysis/run/breakdown.h"

namespace paceline::analysis {
namespace {

// What a run's own figures say already.
const std::set<std::string> not_configuration = {"ranks",      "epochs",          "images", "images_per_iteration",
                                                 "iterations", "target_accuracy", "seed"};

std::string text_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// True where runs on different numbers of ranks share one global batch.
bool is_global_batch_kept(const std::vector<RunReport>& runs) {
  std::set<double> batches;
  std::set<int> ranks;
  for (const auto& run : runs) {
    const auto batch = run.number("global_batch");
    if (!batch) return false;
    batches.insert(*batch);
    ranks.insert(run.ranks);
  }
  return ranks.size() > 1 && batches.size() == 1;
}

ScalingRun scaling_run(const RunReport& run, bool global_batch_kept) {
  ScalingRun out;
  out.label = run.path;
  out.ranks = run.ranks;
  out.epochs = run.number("epochs").value_or(0);
  out.images = run.images.value_or(0);
  out.seconds = 1e-9 * static_cast<double>(run.wall_ns);
  out.accuracy = run.accuracy;
  out.seconds_to_accuracy = run.seconds_to_accuracy;
  out.iteration_seconds = run.iterations.seconds;
  out.warmup = run.iterations.warmup;
  for (const auto& [key, value] : run.config.items()) {
    if (not_configuration.contains(key)) continue;
    if (key == (global_batch_kept ? "batch_per_rank" : "global_batch")) continue;  // follows from the other
    out.config[key] = text_of(value);
    // The batch that the runs share defines their series.
    if (key == (global_batch_kept ? "global_batch" : "batch_per_rank")) out.config.emplace("batch", text_of(value));
  }
  return out;
}

double seconds_of(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

// The runs of a point that have a breakdown, communication included.
std::vector<std::size_t> broken_down(const Report& report, const ScalingPoint& point) {
  std::vector<std::size_t> runs;
  for (const std::size_t r : point.runs) {
    const auto run = report.run_of_scaling_run[r];
    if (run && report.runs[*run].breakdown && report.runs[*run].communication_observed) runs.push_back(*run);
  }
  return runs;
}

template <class Figure>
double mean_over(const Report& report, const std::vector<std::size_t>& runs, Figure&& figure) {
  double sum = 0;
  for (const std::size_t r : runs) sum += figure(report.runs[r]);
  return sum / static_cast<double>(runs.size());
}

double waited_s(const RunReport& run) {
  double sum = 0;
  for (const auto& rank : run.per_rank) sum += seconds_of(rank.waited_ns) / static_cast<double>(run.per_rank.size());
  return std::min(sum, seconds_of(run.breakdown->overhead_ns));
}

std::optional<LostTime> lost_time(const Report& report, const ScalingPoint& one, const ScalingPoint& many) {
  LostTime lost;
  lost.one = broken_down(report, one);
  lost.many = broken_down(report, many);
  if (lost.one.empty() || lost.many.empty()) return std::nullopt;
  lost.ranks = many.ranks;
  const double n = many.ranks;
  const auto wall = [](const RunReport& run) { return seconds_of(run.breakdown->wall_ns); };
  const auto serial = [](const RunReport& run) { return seconds_of(run.breakdown->serial_ns); };
  const auto overhead = [](const RunReport& run) { return seconds_of(run.breakdown->overhead_ns); };
  const auto parallel = [](const RunReport& run) { return seconds_of(run.breakdown->parallel_ns); };
  lost.ideal_s = mean_over(report, lost.one, wall) / n;
  lost.actual_s = mean_over(report, lost.many, wall);
  lost.serial_s = mean_over(report, lost.many, serial) - mean_over(report, lost.one, serial) / n;
  lost.overhead_s = mean_over(report, lost.many, overhead) - mean_over(report, lost.one, overhead) / n;
  lost.slowdown_s = mean_over(report, lost.many, parallel) - mean_over(report, lost.one, parallel) / n;
  lost.waiting_s = std::min(mean_over(report, lost.many, waited_s), lost.overhead_s);
  const auto by_wall = [&](std::size_t a, std::size_t b) { return wall(report.runs[a]) < wall(report.runs[b]); };
  const auto [one_low, one_high] = std::ranges::minmax_element(lost.one, by_wall);
  const auto [many_low, many_high] = std::ranges::minmax_element(lost.many, by_wall);
  lost.ideal_low_s = wall(report.runs[*one_low]) / n;
  lost.ideal_high_s = wall(report.runs[*one_high]) / n;
  lost.actual_low_s = wall(report.runs[*many_low]);
  lost.actual_high_s = wall(report.runs[*many_high]);
  return lost;
}

}  // namespace

Report build_report(std::vector<RunReport> runs, std::vector<ScalingRun> rows, const ScalingOptions& options) {
  Report report;
  report.runs = std::move(runs);
  const bool global_batch_kept = is_global_batch_kept(report.runs);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    auto& run = report.runs[r];
    if (global_batch_kept && run.breakdown) {
      run.global_batch_kept = true;
      const bool evaluate_on_all_ranks = run.config.value("evaluate", nlohmann::json()) == "all ranks";
      classify(*run.breakdown, {run.ranks, evaluate_on_all_ranks, true}, run.iterations.steady());
    }
    if (!run.can_be_compared()) continue;  // the findings say why
    report.scaling_runs.push_back(scaling_run(run, global_batch_kept));
    report.run_of_scaling_run.push_back(r);
  }
  for (auto& row : rows) {
    report.scaling_runs.push_back(std::move(row));
    report.run_of_scaling_run.push_back(std::nullopt);
  }
  report.scaling = scaling_of(report.scaling_runs, options);
  for (const auto& point : report.scaling.points) {
    if (!point.baseline || point.ranks == 1) continue;
    if (auto lost = lost_time(report, report.scaling.points[*point.baseline], point)) {
      report.lost_time.push_back(std::move(*lost));
    }
  }
  write_findings(report);
  return report;
}

}  // namespace paceline::analysis
