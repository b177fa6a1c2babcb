// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/run_plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace paceline::train {

RunPlan::RunPlan(const EpochPlan& pass, const BatchSchedule& batches) {
  std::vector<std::uint64_t> starts{0};
  for (const double boundary : batches.boundaries()) starts.push_back(static_cast<std::uint64_t>(std::ceil(boundary)));
  for (const std::uint64_t epoch : starts) {
    Phase phase{epoch, 0, pass};
    phase.plan.batch *= static_cast<std::size_t>(batches.accumulate(static_cast<double>(epoch)));
    if (!phases_.empty()) {
      const Phase& before = phases_.back();
      if (phase.plan.batch == before.plan.batch) continue;
      phase.iteration = before.iteration + (epoch - before.epoch) * before.plan.iterations();
    }
    if (phase.plan.iterations() == 0) {  // no phase can follow
      wall_ = Place{phase.epoch, phase.iteration, phase.plan};
      if (!phases_.empty()) break;
    }
    phases_.push_back(phase);
    if (wall_) break;
  }
}

RunPlan::Place RunPlan::at(std::uint64_t iteration) const {
  const auto next = std::ranges::upper_bound(phases_, iteration, {}, &Phase::iteration);
  const Phase& phase = *std::prev(next);
  const std::uint64_t within = iteration - phase.iteration, length = phase.plan.iterations();
  return {phase.epoch + within / length, within % length, phase.plan};
}

bool RunPlan::ends_epoch(std::uint64_t iteration) const {
  const Place place = at(iteration);
  return place.iteration + 1 == place.plan.iterations();
}

double RunPlan::epochs_before(std::uint64_t iteration) const {
  const Place place = at(iteration);
  const std::size_t length = place.plan.iterations();
  return static_cast<double>(place.epoch * length + place.iteration) / static_cast<double>(length);
}

std::uint64_t RunPlan::first_of(std::uint64_t epoch) const {
  const auto next = std::ranges::upper_bound(phases_, epoch, {}, &Phase::epoch);
  const Phase& phase = *std::prev(next);
  return phase.iteration + (epoch - phase.epoch) * phase.plan.iterations();
}

}  // namespace paceline::train
