#include "analysis/report/build.h"

#include <algorithm>
#include <set>

#include "analysis/report/breakdown.h"
#include "analysis/report/findings.h"

namespace paceline::analysis {
namespace {

// What follows from the number of ranks, or says nothing about speed, does not part a series.
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

// A single rank uses no communicator: where the others agree in theirs, it does not part them from it.
bool communicator_parts(const std::vector<RunReport>& runs) {
  std::set<std::string> communicators;
  for (const auto& run : runs) {
    if (run.ranks > 1) communicators.insert(text_of(run.config.value("communicator", nlohmann::json(""))));
  }
  return communicators.size() > 1;
}

ScalingRun scaling_run(const RunReport& run, bool global_batch_kept, bool with_communicator) {
  ScalingRun out;
  out.label = run.path;
  out.ranks = run.ranks;
  out.epochs = run.number("epochs").value_or(0);
  out.images = run.images.value_or(0);
  out.seconds = 1e-9 * static_cast<double>(run.wall_ns);
  out.accuracy = run.accuracy;
  out.seconds_to_accuracy = run.seconds_to_accuracy;
  out.iteration_seconds = run.iterations.seconds;
  for (const auto& [key, value] : run.config.items()) {
    if (not_configuration.contains(key)) continue;
    if (key == (global_batch_kept ? "batch_per_rank" : "global_batch")) continue;  // follows from the other
    if (key == "communicator" && !with_communicator) continue;
    out.config[key] = text_of(value);
  }
  return out;
}

std::optional<LostTime> lost_time(const Report& report, std::size_t one_index, std::size_t many_index) {
  const RunReport &one = report.runs[one_index], &many = report.runs[many_index];
  if (!one.breakdown || !many.breakdown || !many.communication_observed) return std::nullopt;
  const double n = many.ranks;
  const auto seconds = [](std::int64_t ns) { return 1e-9 * static_cast<double>(ns); };
  LostTime lost;
  lost.one = one_index;
  lost.many = many_index;
  lost.ranks = many.ranks;
  lost.ideal_s = seconds(one.breakdown->wall_ns) / n;
  lost.actual_s = seconds(many.breakdown->wall_ns);
  lost.serial_s = seconds(many.breakdown->serial_ns) - seconds(one.breakdown->serial_ns) / n;
  lost.overhead_s = seconds(many.breakdown->overhead_ns) - seconds(one.breakdown->overhead_ns) / n;
  lost.slowdown_s = seconds(many.breakdown->parallel_ns) - seconds(one.breakdown->parallel_ns) / n;
  for (const auto& rank : many.per_rank)
    lost.waiting_s += seconds(rank.waited_ns) / static_cast<double>(many.per_rank.size());
  lost.waiting_s = std::min(lost.waiting_s, lost.overhead_s);
  return lost;
}

}  // namespace

Report build_report(std::vector<RunReport> runs, std::vector<ScalingRun> rows) {
  Report report;
  report.runs = std::move(runs);
  const bool global_batch_kept = is_global_batch_kept(report.runs);
  const bool with_communicator = communicator_parts(report.runs);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    auto& run = report.runs[r];
    if (global_batch_kept && run.breakdown) {
      run.global_batch_kept = true;
      const bool evaluate_on_all_ranks = run.config.value("evaluate", nlohmann::json()) == "all ranks";
      classify(*run.breakdown, {run.ranks, evaluate_on_all_ranks, true}, run.iterations.seconds);
    }
    if (!run.damage.empty()) continue;  // a cut trace does not tell how long the job took
    report.scaling_runs.push_back(scaling_run(run, global_batch_kept, with_communicator));
    report.run_of_scaling_run.push_back(r);
  }
  for (auto& row : rows) {
    report.scaling_runs.push_back(std::move(row));
    report.run_of_scaling_run.push_back(std::nullopt);
  }
  report.scaling = scaling_of(report.scaling_runs);
  for (const auto& point : report.scaling.points) {
    if (!point.baseline || point.ranks == 1) continue;
    const auto one = report.run_of_scaling_run[report.scaling.points[*point.baseline].runs.front()];
    const auto many = report.run_of_scaling_run[point.runs.front()];
    if (!one || !many) continue;
    if (const auto lost = lost_time(report, *one, *many)) report.lost_time.push_back(*lost);
  }
  write_findings(report);
  return report;
}

}  // namespace paceline::analysis
