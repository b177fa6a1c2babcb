#include "trainer/run/job.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace paceline::train {

Job::Job(const TrainOptions& run_options, Surroundings around)
    : options(run_options),
      surroundings(std::move(around)),
      communicator(watched(surroundings.communicator, activity)),
      ranks(*communicator.collectives) {}

Job::~Job() {
  constexpr std::chrono::seconds patience(5);
  if (loader && !loader->stop(patience)) {
    surroundings.abandon(
        fmt::format("the loader is still in a read after {} s: the process ends without it", patience.count()));
  }
}

double Job::global_batch() const { return static_cast<double>(options.batch_size * options.accumulate * ranks.size()); }

RunPlan Job::plan_of(int rank) const {
  const bool equal_length = options.sharding == "equal-length";
  return {{data.train->size(), static_cast<std::size_t>(options.batch_size), rank, ranks.size(), equal_length},
          batches};
}

// The schedule counts iterations of the first epoch's length, because the batch may grow.
double Job::rate_at(std::uint64_t iteration) const {
  return schedule(std::llround(plan.epochs_before(iteration) * static_cast<double>(first_epoch.iterations())));
}

double Job::seconds_since_start() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - surroundings.start).count();
}

}  // namespace paceline::train
