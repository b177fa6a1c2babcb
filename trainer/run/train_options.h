// SPDX-License-Identifier: Apache-2.0
// What a training run is asked to do. Other folders read it; cli/ fills it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/nccl_options.h"
#include "trainer/nn/model.h"
#include "trainer/optim/batch_schedule.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/rate_plan.h"
#include "trainer/pipeline/grid.h"
#include "trainer/updaters/kinds.h"

namespace paceline::train {

// How weights are learned: optimizer, rates, batch norms and model variants.
struct OptimizationOptions {
  OptimizationOptions() { optimizer.weight_decay.rate = 5e-4f; }

  OptimizerOptions optimizer;
  std::vector<std::string> decay_exclude;  // of batch_norm, bias
  RateOptions rate;
  std::optional<double> clip_gradient_norm;  // no clipping if empty
  double label_smoothing = 0;
  double grow_batch = 1;
  std::int64_t grow_batch_limit = 0;

  bool freeze_batch_norm = false, sync_batch_norm = false;
  std::int64_t ghost_batch = 0;
  std::string batch_norm_statistics = "average";

  bool resnet_v1 = false, zero_gamma = false;
  double width = 1;
};

struct TrainOptions {
  std::string model = "resnet18";
  std::string data;  // directory; empty: synthetic
  bool synthetic = false;
  std::optional<std::int64_t> image_size;              // default: 32 for synthetic data, 224 for crops from pictures
  std::optional<std::int64_t> classes;                 // default: 10 for synthetic data, else those of the data set
  std::optional<std::int64_t> resize;                  // CIFAR-10: pixels on each side after enlarging
  double fraction = 1;                                 // of the images of each class
  std::string augment = "all";                         // or crop, mirror, none: random changes of training images
  bool broadcast_data = false;                         // rank 0 reads for all
  std::string sharding = "exact";                      // or equal-length
  std::string on_bad_image = "stop";                   // or skip
  std::size_t loader_workers = 1;                      // threads
  std::size_t train_images = 2048, test_images = 512;  // of synthetic data
  std::int64_t batch_size = 32;                        // per rank
  std::uint64_t epochs = 3;
  std::uint64_t iterations = 0;  // of the whole run; 0: those of `epochs`
  int threads = 0;               // 0: cores divided by the ranks of this host
  OptimizationOptions optimization;
  std::uint64_t seed = 1;
  std::string dtype = "f32";
  bool exact = false;          // no Winograd's algorithm
  std::string device = "cpu";  // or cuda, auto
  bool share_gpu = false;
  bool cuda_graphs = false, no_fusion = false;
  std::string plan_cache = "default";  // a file, none, or default: a file in the user's cache folder
  bool deterministic = false;
  std::string communicator = "mpi";
  bool communicator_given = false;  // if not, the program chooses one for GPUs
  std::string allreduce_dtype = "f32";
  nccl::Options reduction;                   // its type is allreduce_dtype
  std::string log, tensorboard, checkpoint;  // files, and the directory of an event file; empty: none
  std::string checkpoint_every = "epoch";    // as parse_checkpoint_every() takes it
  unsigned keep = 1;                         // checkpoints
  bool keep_best = false;                    // and that of the best test accuracy
  std::string import_weights;                // safetensors file of the first weights; empty: drawn from the seed
  std::string export_weights;                // safetensors file of the last weights; empty: none
  bool evaluate_only = false;                // no training
  bool resume = false, overwrite_checkpoint = false;
  std::uint64_t eval_every = 1;  // epochs; 0: at the end only
  double target_accuracy = 0.9;

  std::string updater = "allreduce";
  UpdaterValues updater_values;  // of the updater's own options
  std::int64_t accumulate = 1;   // passes of batch_size images in each iteration
  PipelineOptions pipeline;
  std::vector<std::string> faults;  // as parse_faults takes them

  // Lines of NAME=VALUE for messages: the options that must be the same on every rank, and those of them that decide
  // what is learned or how fast, which a resumed run should repeat.
  std::string settings, learning_settings;
};

// The micro-batches of an update as the run goes on, beginning with `first`. stretch: how many times longer regime
// adaptation makes the epochs.
BatchSchedule batch_schedule_of(const OptimizationOptions& options, std::int64_t first, double stretch);

// Sets the variants of the model and its batch norms. sum_over_ranks: for synchronised batch norms.
void set_variants(const OptimizationOptions& options, const std::function<void(std::span<double>)>& sum_over_ranks,
                  ModelOptions& model);

// The model's name with the variants that change its parameters or their meaning, e.g. "resnet50 v1 width 0.25".
std::string title_of(const std::string& model, const OptimizationOptions& options);

}  // namespace paceline::train
