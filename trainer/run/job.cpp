// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

namespace paceline::train {

Job::Job(const TrainOptions& run_options, Surroundings around)
    : options(run_options),
      surroundings(std::move(around)),
      communicator(watched(surroundings.communicator,
                           surroundings.grid != nullptr ? surroundings.grid->of_stage : surroundings.communicator,
                           activity)),
      ranks(*communicator.collectives),
      same_stage(surroundings.grid == nullptr
                     ? nullptr
                     : std::make_unique<WatchedCollectives>(*surroundings.grid->of_stage.collectives, activity, false)),
      replicas(same_stage ? *same_stage : ranks) {}

Job::~Job() {
  constexpr std::chrono::seconds patience(5);
  if (loader && !loader->stop(patience)) {
    surroundings.abandon(
        fmt::format("the loader is still in a read after {} s: the process ends without it", patience.count()));
  }
}

double Job::global_batch() const {
  return static_cast<double>(options.batch_size * options.accumulate * replicas.size());
}

std::size_t Job::planned_images() const {
  const std::size_t images = data.train->size();
  if (!options.evaluate_only) return images;
  const std::size_t of_iteration =
      static_cast<std::size_t>(options.batch_size * options.accumulate) * static_cast<std::size_t>(replicas.size());
  return std::max(images, of_iteration);
}

RunPlan Job::plan_of(int replica) const {
  const bool equal_length = options.sharding == "equal-length";
  return {{planned_images(), static_cast<std::size_t>(options.batch_size), replica, replicas.size(), equal_length},
          batches};
}

const ImageSource& Job::train_images() const {
  return staged && staged->train_labels ? *staged->train_labels : *data.train;
}

const ImageSource& Job::test_images() const {
  return staged && staged->test_labels ? *staged->test_labels : *data.test;
}

// The schedule counts iterations of the first epoch's length, because the batch may grow.
double Job::rate_at(std::uint64_t iteration) const {
  return schedule(std::llround(plan.epochs_before(iteration) * static_cast<double>(first_epoch.iterations())));
}

double Job::seconds_since_start() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - surroundings.start).count();
}

bool Job::has_checkpoint() const {
  std::error_code code;
  return !options.checkpoint.empty() && std::filesystem::exists(options.checkpoint, code);
}

std::string Job::kept_checkpoint() const {
  return has_checkpoint() ? fmt::format("; {} is still the checkpoint before", options.checkpoint) : "";
}

}  // namespace paceline::train
