// SPDX-License-Identifier: Apache-2.0
// Divides a whole run into epochs and these into iterations. The batch may grow from one epoch to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/data/sharding.h"
#include "trainer/optim/batch_schedule.h"

namespace paceline::train {

class RunPlan {
 public:
  RunPlan() = default;  // an empty plan

  // All epochs are equal.
  RunPlan(const EpochPlan& epoch) : RunPlan(epoch, BatchSchedule(1)) {}  // NOLINT: a plan of equal epochs is a plan

  // pass: one pass of each rank over one micro-batch. An epoch's iterations take the number of passes that `batches`
  // has at its beginning: a boundary within an epoch takes effect at the next one.
  RunPlan(const EpochPlan& pass, const BatchSchedule& batches);

  struct Place {
    std::uint64_t epoch = 0;
    std::uint64_t iteration = 0;  // within the epoch
    EpochPlan plan;               // of the epoch
  };
  Place at(std::uint64_t iteration) const;  // counted over the whole run

  bool ends_epoch(std::uint64_t iteration) const;
  double epochs_before(std::uint64_t iteration) const;  // passes over the data before it, as a fraction
  std::uint64_t first_of(
      std::uint64_t epoch) const;  // its first iteration; for the last epoch + 1, the number of iterations

  // The point at which an iteration would take more samples than there are, so that a run cannot go on: the epoch, its
  // first iteration in the run, and its plan.
  const std::optional<Place>& wall() const { return wall_; }

 private:
  // Consecutive epochs with the same batch.
  struct Phase {
    std::uint64_t epoch, iteration;  // the first ones
    EpochPlan plan;
  };
  std::vector<Phase> phases_;
  std::optional<Place> wall_;
};

}  // namespace paceline::train
