// SPDX-License-Identifier: Apache-2.0
// The weights, statistics and optimizer state of all stages, as one whole on rank 0. Checkpoints and exported weights
// hold the whole in the usual form, so that runs on any grid can read them.
#pragma once

#include <span>
#include <vector>

#include "trainer/comm/collectives.h"
#include "trainer/nn/model.h"
#include "trainer/nn/network.h"
#include "trainer/optim/optimizer.h"
#include "trainer/pipeline/grid.h"
#include "trainer/pipeline/partition.h"

namespace paceline::train {

// Where a stage's parameters and statistics are among those of the whole network.
struct StageParts {
  std::size_t first_parameter = 0, parameters = 0;
  std::size_t first_statistic = 0, statistics = 0;
};
std::vector<StageParts> parts_of(const Network& network, const std::vector<LayerRun>& stages);

// Moves state between the stages and rank 0. All functions are collective calls over the job's ranks, and use `whole`,
// a plain model of the whole network, on rank 0 alone; it may be null elsewhere. A stage's state comes from its first
// replica and goes to all of its replicas.
class WholeStateMover {
 public:
  WholeStateMover(Collectives& ranks, const Grid& grid, std::vector<StageParts> parts)
      : ranks_(ranks), grid_(grid), parts_(std::move(parts)) {}

  // From the stages' flat buffers, laid out like their models' weights, to one laid out like the whole model's.
  void gather(Model& stage, std::span<const float> flat, Model* whole, std::span<float> whole_flat);
  void scatter(Model& stage, std::span<float> flat, Model* whole, std::span<const float> whole_flat);

  // The same for an optimizer's arrays and single numbers.
  void gather(Model& stage, Optimizer& optimizer, Model* whole, Optimizer* whole_state);
  void scatter(Model& stage, Optimizer& optimizer, Model* whole, Optimizer* whole_state);

  // The statistics of one replica after another, each a whole; one replica's for `replicas` 1. Empty except on rank 0.
  std::vector<float> gather_statistics(std::span<const float> own, int replicas, std::size_t whole_size);

  const StageParts& own() const { return parts_[static_cast<std::size_t>(grid_.stage)]; }  // this rank's stage

  // This stage's part of a whole's statistics.
  std::span<const float> own_statistics(std::span<const float> whole) const;

 private:
  std::size_t values_of(Model& whole, const StageParts& part) const;
  Collectives& ranks_;
  const Grid& grid_;
  const std::vector<StageParts> parts_;
};

}  // namespace paceline::train
