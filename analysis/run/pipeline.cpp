// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/pipeline.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace run_pipeline {
namespace {

// The median seconds of a rank's ranges of this category; 0 if it has none.
double median_s(const RankSummary& rank, std::string_view category) {
  const auto found = std::ranges::find_if(rank.ranges, [&](const RangeStatistics& range) {
    return range.domain == "paceline.trainer" && range.category == category;
  });
  return found == rank.ranges.end() ? 0 : 1e-9 * found->durations.quantile_ns(0.5);
}

// Rank r has stage r ÷ replicas. Returns whether every rank has times of its stage.
bool read_stages(const RunAnalysis& run, std::size_t stages, PipelineFigures& figures) {
  const std::size_t replicas = run.per_rank.size() / stages;
  const auto count = static_cast<double>(replicas);
  figures.stages.resize(stages);
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    PipelineStage& stage = figures.stages[r / replicas];
    const double forward = median_s(run.per_rank[r], "forward"), backward = median_s(run.per_rank[r], "backward");
    if (forward == 0 || backward == 0) return false;
    stage.ranks.push_back(r);
    stage.forward_s += forward / count;
    stage.backward_s += backward / count;
    if (r < replicas) figures.length_s += median_s(run.per_rank[r], "stage") / count;
  }
  return figures.length_s > 0;
}

// Joins what the ranks did in each iteration. An iteration that a rank lacks is left out.
void add_iterations(const RunAnalysis& run, PipelineFigures& figures) {
  struct Sums {
    std::size_t ranks = 0;
    double length_s = 0;
    std::vector<double> busy_s;
  };
  const std::size_t stages = figures.stages.size(), replicas = run.per_rank.size() / stages;
  const double part = 1e-9 / static_cast<double>(replicas);
  std::map<std::int64_t, Sums> by_number;
  for (std::size_t r = 0; r < run.per_rank.size(); ++r) {
    for (const StageIteration& one : run.per_rank[r].stage.iterations) {
      Sums& sums = by_number[one.number];
      sums.busy_s.resize(stages);
      ++sums.ranks;
      sums.busy_s[r / replicas] += part * static_cast<double>(one.busy_ns);
      if (r < replicas) sums.length_s += part * static_cast<double>(one.length_ns);
    }
  }
  for (auto& [number, sums] : by_number) {
    if (sums.ranks != run.per_rank.size() || sums.length_s <= 0) continue;
    double busy = 0;
    for (const double of_stage : sums.busy_s) busy += of_stage;
    const double bubble = 1 - busy / (static_cast<double>(stages) * sums.length_s);
    figures.iterations.push_back({number, sums.length_s, bubble, std::move(sums.busy_s)});
  }
}

// Finds the longest iteration after warm-up, and the stage that worked most above its median in it.
void find_slowest(PipelineFigures& figures) {
  constexpr double clearly_longer = 1.2;
  constexpr std::size_t fewest = 5;  // iterations, for a usual length
  const std::size_t warm_up = std::max<std::size_t>(1, figures.iterations.size() / 10);
  if (figures.iterations.size() < warm_up + fewest) return;
  const std::span steady = std::span(figures.iterations).subspan(warm_up);
  const auto longest = std::ranges::max_element(steady, {}, &PipelineFigures::Iteration::length_s);
  std::vector<double> lengths;
  for (const PipelineFigures::Iteration& one : steady) lengths.push_back(one.length_s);
  if (longest->length_s < clearly_longer * median(std::move(lengths))) return;
  figures.slowest = warm_up + static_cast<std::size_t>(longest - steady.begin());
  double most = 0;
  for (std::size_t s = 0; s < figures.stages.size(); ++s) {
    std::vector<double> busy;
    for (const PipelineFigures::Iteration& one : steady) busy.push_back(one.busy_s[s]);
    const double more = longest->busy_s[s] - median(std::move(busy));
    if (s == 0 || more > most) {
      most = more;
      figures.slowest_stage = s;
    }
  }
}

}  // namespace
}  // namespace run_pipeline

double pipeline_length(const std::vector<PipelineStage>& stages, std::size_t microbatches,
                       const std::string& schedule) {
  struct Progress {
    double free_s = 0;  // when the stage has done its work so far
    std::vector<double> forward_ends, backward_ends;
  };
  std::vector<Progress> all(stages.size());
  // In each round every stage does one thing if its neighbours have done what it needs. The last stage that is not done
  // always can, so the rounds end.
  for (std::size_t left = 2 * microbatches * stages.size(); left > 0;) {
    for (std::size_t s = 0; s < stages.size(); ++s) {
      Progress& own = all[s];
      const std::size_t forwards = own.forward_ends.size(), backwards = own.backward_ends.size();
      const std::size_t ahead = schedule == "1f1b" ? stages.size() - s : microbatches;
      const bool is_forward = forwards < std::min(microbatches, backwards + ahead);
      if (!is_forward && backwards == microbatches) continue;
      const bool is_end = is_forward ? s == 0 : s + 1 == stages.size();
      double ready = 0;
      if (!is_end) {
        const std::vector<double>& from = is_forward ? all[s - 1].forward_ends : all[s + 1].backward_ends;
        const std::size_t needed = is_forward ? forwards : backwards;
        if (from.size() <= needed) continue;
        ready = from[needed];
      }
      own.free_s = std::max(own.free_s, ready) + (is_forward ? stages[s].forward_s : stages[s].backward_s);
      (is_forward ? own.forward_ends : own.backward_ends).push_back(own.free_s);
      --left;
    }
  }
  double length = 0;
  for (const Progress& progress : all) length = std::max(length, progress.free_s);
  return length;
}

std::optional<PipelineFigures> pipeline_figures(const RunAnalysis& run) {
  const auto stages = static_cast<std::size_t>(run.config.number("pipeline_stages").value_or(0));
  PipelineFigures figures;
  figures.microbatches = static_cast<std::size_t>(run.config.number("microbatches").value_or(0));
  const bool whole = run.per_rank.size() == static_cast<std::size_t>(run.ranks);
  if (stages < 2 || figures.microbatches == 0 || !whole || run.per_rank.size() % stages != 0) return std::nullopt;
  if (run.refused() || !run_pipeline::read_stages(run, stages, figures)) return std::nullopt;
  const auto m = static_cast<double>(figures.microbatches), k = static_cast<double>(stages);
  double busy = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    PipelineStage& stage = figures.stages[s];
    stage.busy_s = m * (stage.forward_s + stage.backward_s);
    stage.bubble = 1 - stage.busy_s / figures.length_s;
    busy += stage.busy_s;
    if (stage.busy_s > figures.stages[figures.longest].busy_s) figures.longest = s;
  }
  run_pipeline::add_iterations(run, figures);
  run_pipeline::find_slowest(figures);
  figures.bubble = 1 - busy / (k * figures.length_s);
  figures.ideal_bubble = (k - 1) / (m + k - 1);
  figures.imbalance = figures.stages[figures.longest].busy_s * k / busy;
  const std::string schedule = run.config.text("pipeline_schedule", "gpipe");
  figures.predicted_length_s = pipeline_length(figures.stages, figures.microbatches, schedule);
  figures.predicted_bubble = 1 - busy / (k * figures.predicted_length_s);
  for (const std::size_t other : {figures.microbatches / 2, figures.microbatches * 2, figures.microbatches * 4}) {
    if (other == 0) continue;
    std::vector<PipelineStage> scaled = figures.stages;
    for (PipelineStage& stage : scaled) {
      stage.forward_s *= m / static_cast<double>(other);
      stage.backward_s *= m / static_cast<double>(other);
    }
    const double length = pipeline_length(scaled, other, schedule);
    figures.others.push_back({other, length, 1 - busy / (k * length)});
  }
  return figures;
}

}  // namespace paceline::analysis
