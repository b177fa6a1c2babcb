// The part of the command line that says how weights are learned: model variants, optimizer, rates, batch norm.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/nn/model.h"
#include "trainer/optim/batch_schedule.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/rate_plan.h"

namespace CLI {
class App;
}

namespace paceline::train {

struct OptimizationOptions {
  OptimizationOptions() { optimizer.weight_decay.rate = 5e-4f; }

  OptimizerOptions optimizer;
  std::vector<std::string> decay_exclude;  // of batch_norm, bias
  RateOptions rate;
  double grow_batch = 1;
  std::int64_t grow_batch_limit = 0;

  bool freeze_batch_norm = false, sync_batch_norm = false;
  std::int64_t ghost_batch = 0;
  std::string batch_norm_statistics = "average";

  bool resnet_v1 = false, zero_gamma = false;
  double width = 1;
};

void add_optimization_options(CLI::App& app, OptimizationOptions& options);

// After parsing: fills what several options say together. Returns what is wrong, empty where nothing is.
std::string complete(OptimizationOptions& options);

// How many micro-batches of `first` an update takes as the run goes on, for a run whose epochs are `stretch` times as
// many.
BatchSchedule batch_schedule_of(const OptimizationOptions& options, std::int64_t first, double stretch);

// Sets the variants of the model and its batch norms. sum_over_ranks: for --sync-batch-norm.
void set_variants(const OptimizationOptions& options, const std::function<void(std::span<double>)>& sum_over_ranks,
                  ModelOptions& model);

// The model's name with the variants that change its parameters or what they mean, e.g. "resnet50 v1 width 0.25".
std::string title_of(const std::string& model, const OptimizationOptions& options);

}  // namespace paceline::train
