// SPDX-License-Identifier: Apache-2.0
// What a run whose ranks form a pipeline has beside other runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/labels_only.h"
#include "trainer/guard/activity.h"
#include "trainer/nn/plain_model.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/pipeline/whole_state.h"

namespace paceline::train {

struct StagedRun {
  StagedRun(Collectives& ranks, const Grid& run_grid, Activity& activity, Network whole_network,
            std::vector<LayerRun> run_stages);

  const Grid& grid;
  const Network network;               // the whole one
  const std::vector<LayerRun> stages;  // layers of each
  const Network part;                  // this rank's
  WholeStateMover mover;
  StageLinks links;
  std::unique_ptr<Pipeline> pipeline;  // made with the model
  std::unique_ptr<Model> whole_model;  // rank 0, until all ranks have their parts: what was read from a file
  std::unique_ptr<ImageSource> train_labels, test_labels;  // instead of the images; null on the first stage
  ModelOptions model_options;                              // of this rank's models: of one microbatch
  struct Part {
    std::string first_layer;
    double cost = 0;  // seconds of a microbatch, or multiply-adds
  };
  std::vector<Part> parts;  // the smallest ones between which the network can be cut, in order
  std::string balance;      // a line on the measured stages; empty if nothing was measured

  const std::string& first_layer(const LayerRun& layers) const;
  // The names of the first layers of the stages behind the first, separated by commas.
  std::string split() const;
  std::size_t statistics() const;  // of the whole network
};

}  // namespace paceline::train
