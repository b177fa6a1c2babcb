// How a whole run is cut into epochs and these into iterations, where the batch may grow from one epoch to another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/data/sharding.h"
#include "trainer/optim/batch_schedule.h"

namespace paceline::train {

class RunPlan {
 public:
  RunPlan() = default;  // of no run

  // All epochs alike.
  RunPlan(const EpochPlan& epoch) : RunPlan(epoch, BatchSchedule(1)) {}  // NOLINT: a plan of equal epochs is a plan

  // pass: one pass of each rank over one micro-batch. An epoch's iterations take as many of these as `batches` says for
  // its beginning: a boundary within an epoch acts from the next one on.
  RunPlan(const EpochPlan& pass, const BatchSchedule& batches);

  struct Place {
    std::uint64_t epoch = 0;
    std::uint64_t iteration = 0;  // within the epoch
    EpochPlan plan;               // of the epoch
  };
  Place at(std::uint64_t iteration) const;  // counted over the whole run

  bool ends_epoch(std::uint64_t iteration) const;
  double epochs_before(std::uint64_t iteration) const;  // passes over the data that end before it; a fraction
  std::uint64_t first_of(std::uint64_t epoch) const;  // its first iteration; of the last epoch + 1: how many there are

  // Where an iteration would take more samples than there are, so that no run goes on there: epoch, the run's first
  // iteration of it, and its plan.
  const std::optional<Place>& wall() const { return wall_; }

 private:
  // Epochs of one batch.
  struct Phase {
    std::uint64_t epoch, iteration;  // the first
    EpochPlan plan;
  };
  std::vector<Phase> phases_;
  std::optional<Place> wall_;
};

}  // namespace paceline::train
