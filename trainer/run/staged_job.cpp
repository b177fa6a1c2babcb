// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/staged_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/checkpoint/sharded_state.h"
#include "trainer/guard/agreement.h"
#include "trainer/nn/models.h"
#include "trainer/run/evaluation.h"
#include "trainer/run/stage_costs.h"

namespace paceline::train {
namespace staged {
namespace {

std::vector<std::string> at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

// Prints what the stages were measured to take, so that users see how well the network can be divided.
std::string balance_line(const StagedRun& staged, const std::vector<LayerRun>& runs, const std::vector<double>& costs) {
  const double all = std::accumulate(costs.begin(), costs.end(), 0.0);
  std::string line = "stages by measured time:";
  for (const LayerRun& stage : staged.stages) {
    double own = 0;
    for (std::size_t run = 0; run < runs.size(); ++run) {
      if (runs[run].first >= stage.first && runs[run].last <= stage.last) own += costs[run];
    }
    line += fmt::format("{} from {} {:.1f} ms ({:.0f} %)", &stage == &staged.stages.front() ? "" : ",",
                        staged.first_layer(stage), own * 1e3, 100 * own / all);
  }
  return line;
}

// Of one microbatch's forward pass; the backward pass has twice as many multiply-adds.
std::chrono::nanoseconds stage_delay(const StagedRun& run, std::chrono::nanoseconds whole, std::int64_t microbatches) {
  const double share = run.part.train_flops() / run.network.train_flops() / static_cast<double>(3 * microbatches);
  return std::chrono::nanoseconds(std::llround(share * static_cast<double>(whole.count())));
}

}  // namespace
}  // namespace staged

std::unique_ptr<StagedRun> split_network(Job& job, const ModelOptions& options) {
  const PipelineOptions& o = job.options.pipeline;
  const auto count = static_cast<std::size_t>(o.stages);
  std::unique_ptr<Network> network;
  std::vector<LayerRun> runs, stages;
  std::vector<double> costs;
  together(job.ranks, [&] {
    network = std::make_unique<Network>(build_network(options));
    runs = smallest_runs(*network);
    if (runs.size() < count) {
      throw Error(fmt::format("‹pipeline-stages› {}", count),
                  fmt::format("a {} has {} parts that can be separated", options.name, runs.size()),
                  "give at most that", Status::usage);
    }
    costs = computed_costs(*network, runs);
    if (o.split == "operations") {
      stages = stages_of(runs, balanced_cuts(costs, count));
    } else if (o.split != "measured") {
      stages = stages_from(*network, staged::at_commas(o.split), count);
    }
  });
  const bool measured = count > 1 && stages.empty();
  if (count == 1) {
    stages = {{1, static_cast<int>(network->layers().size())}};
  } else if (measured) {
    costs = measured_costs(job.ranks, *network, runs, options);
    stages = stages_of(runs, balanced_cuts(costs, count));
  }
  auto run = std::make_unique<StagedRun>(job.ranks, *job.surroundings.grid, job.activity, std::move(*network),
                                         std::move(stages));
  run->model_options = options;
  if (measured) run->balance = staged::balance_line(*run, runs, costs);
  for (std::size_t i = 0; i < runs.size(); ++i) run->parts.push_back({run->first_layer(runs[i]), costs[i]});
  if (!run->links.first()) {
    run->train_labels = std::make_unique<LabelsOnly>(*job.data.train);
    run->test_labels = std::make_unique<LabelsOnly>(*job.data.test);
  }
  return run;
}

void make_stage(Job& job) {
  StagedRun& staged = *job.staged;
  const PipelineOptions& o = job.options.pipeline;
  const auto microbatches = static_cast<std::size_t>(o.microbatches);
  const std::vector<StageStep> schedule =
      stage_schedule(o.schedule, staged.links.stage(), staged.links.stages(), microbatches);
  staged.model_options.memory_limit /= most_in_flight(schedule);
  std::unique_ptr<StageModel> model = make_cpu_stage(staged.part, staged.model_options);
  model->observer = &job.layer_ranges;
  const PassOptions pass{.seed = job.options.seed,
                         .rank = job.replicas.rank(),
                         .batch = static_cast<std::size_t>(staged.model_options.batch_size),
                         .delay = job.faults.slow_rank.of(job.ranks.rank()),
                         .stage_delay = staged::stage_delay(staged, job.faults.slow_layers, o.microbatches)};
  staged.pipeline = std::make_unique<Pipeline>(*model, staged.part, staged.model_options, staged.links, o.schedule,
                                               microbatches, pass);
  job.model = std::move(model);
  const bool reads = job.options.resume || !job.options.import_weights.empty();
  if (reads && job.ranks.rank() == 0) staged.whole_model = make_plain_model(staged.network, job.options.seed);
}

std::unique_ptr<Model> gather_model(Job& job) {
  StagedRun& staged = *job.staged;
  std::unique_ptr<Model> whole;
  if (job.ranks.rank() == 0) whole = make_plain_model(staged.network, job.options.seed);
  staged.mover.gather(*job.model, job.model->weights(), whole.get(), whole ? whole->weights() : std::span<float>());
  const std::vector<float> statistics = staged.mover.gather_statistics(job.model->statistics(), 1, staged.statistics());
  if (whole) std::ranges::copy(statistics, whole->statistics().begin());
  return whole;
}

void scatter_model(Job& job) {
  StagedRun& staged = *job.staged;
  Model* const whole = staged.whole_model.get();
  if (!job.options.resume && job.options.import_weights.empty()) return;  // all ranks drew the same weights
  if (whole != nullptr && !job.whole_state) {                             // there was no checkpoint
    job.whole_state = whole_state_of(*job.optimizer, whole->weights().size());
    job.whole_state->scalars() = job.optimizer->scalars();
  }
  staged.mover.scatter(*job.model, job.model->weights(), whole,
                       whole != nullptr ? whole->weights() : std::span<float>());
  staged.mover.scatter(*job.model, *job.optimizer, whole, job.whole_state.get());
  std::vector<float> statistics(staged.statistics());
  if (whole != nullptr) std::ranges::copy(whole->statistics(), statistics.begin());
  job.ranks.broadcast(std::span<float>(statistics), 0);
  std::ranges::copy(staged.mover.own_statistics(statistics), job.model->statistics().begin());
  staged.whole_model.reset();
  job.whole_state.reset();
}

std::vector<float> gather_mean_statistics(Job& job) {
  const std::vector<float> mean = mean_statistics(*job.model, job.replicas);
  return job.staged->mover.gather_statistics(mean, 1, job.staged->statistics());
}

}  // namespace paceline::train
