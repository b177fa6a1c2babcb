// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/build.h"

#include <algorithm>
#include <set>

#include "analysis/communication/accusations.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"

namespace paceline::analysis {
namespace build_parts {

// Keys of a description that a run's own figures already give.
const std::set<std::string> not_configuration = {"ranks",      "epochs",          "images", "images_per_iteration",
                                                 "iterations", "target_accuracy", "seed"};

// True where runs on different numbers of ranks share one global batch.
bool is_global_batch_kept(const std::vector<RunAnalysis>& runs) {
  std::set<double> batches;
  std::set<int> ranks;
  for (const auto& run : runs) {
    const auto batch = run.config.number("global_batch");
    if (!batch) return false;
    batches.insert(*batch);
    ranks.insert(run.ranks);
  }
  return ranks.size() > 1 && batches.size() == 1;
}

ScalingRun scaling_run(const RunAnalysis& run, bool global_batch_kept) {
  ScalingRun out;
  out.label = run.path;
  out.ranks = run.ranks;
  out.epochs = run.config.number("epochs").value_or(0);
  out.images = run.images.value_or(0);
  out.seconds = 1e-9 * static_cast<double>(run.wall_ns);
  out.accuracy = run.accuracy;
  out.seconds_to_accuracy = run.seconds_to_accuracy;
  out.iteration_seconds = run.iterations.seconds;
  out.warmup = run.iterations.warmup;
  // The batch that the runs share defines their series; the other one follows from it.
  const char* const shared = global_batch_kept ? "global_batch" : "batch_per_rank";
  const char* const derived = global_batch_kept ? "batch_per_rank" : "global_batch";
  for (const auto& [key, value] : run.config) {
    if (not_configuration.contains(key) || key == derived) continue;
    out.config[key] = value.text;
    if (key == shared) out.config.emplace("batch", value.text);
  }
  return out;
}

// One level for all accusations of a report.
void correct_accusations(std::vector<RunAnalysis>& runs) {
  std::vector<Accuser> accusers;
  std::vector<LatenessTest> uncorrected;
  for (RunAnalysis& run : runs) {
    uncorrected.push_back(run.lateness);
    accusers.push_back({.late = &run.lateness, .weight = slow_ranks_weight});
    for (LatenessTest* test : {&run.irregularity, &run.host_lateness}) accusers.push_back({.late = test});
    for (LinkTimes& links : run.link_times) accusers.push_back({.late = &links.test});
    accusers.push_back({.change = &run.iterations.change});
  }
  correct_for_all(accusers);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    RunAnalysis& run = runs[r];
    if (!run.iterations.change.change) run.iterations.changed_phase.reset();
    std::vector<LatenessCause> causes;
    for (const LateRank& late : run.lateness.late) {
      const auto found = std::ranges::find(uncorrected[r].late, late.rank, &LateRank::rank);
      const auto index = static_cast<std::size_t>(found - uncorrected[r].late.begin());
      if (index < run.lateness_causes.size()) causes.push_back(run.lateness_causes[index]);
    }
    run.lateness_causes = std::move(causes);
  }
}

}  // namespace build_parts

Report build_report(std::vector<RunAnalysis> runs, std::vector<ScalingRun> rows, const ScalingOptions& options) {
  Report report;
  report.runs = std::move(runs);
  build_parts::correct_accusations(report.runs);
  const bool global_batch_kept = build_parts::is_global_batch_kept(report.runs);
  for (std::size_t r = 0; r < report.runs.size(); ++r) {
    RunAnalysis& run = report.runs[r];
    if (global_batch_kept) run.keep_global_batch();
    if (!run.can_be_compared()) continue;  // the findings give the reason
    report.scaling_runs.push_back(build_parts::scaling_run(run, global_batch_kept));
    report.run_of_scaling_run.push_back(r);
  }
  for (auto& row : rows) {
    report.scaling_runs.push_back(std::move(row));
    report.run_of_scaling_run.push_back(std::nullopt);
  }
  report.scaling = scaling_of(report.scaling_runs, options);
  report.lost_time = lost_times(report);
  write_findings(report);
  return report;
}

}  // namespace paceline::analysis
