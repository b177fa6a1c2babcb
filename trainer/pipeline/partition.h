// SPDX-License-Identifier: Apache-2.0
// Where a network is cut into the stages of a pipeline.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/nn/network.h"

namespace paceline::train {

// A run of layers that no cut divides, and the stretch of the whole network that a stage computes: layers first … last
// − 1.
struct LayerRun {
  int first = 0, last = 0;
  bool operator==(const LayerRun&) const = default;
};

// The smallest runs into which the network can be cut, in order.
std::vector<LayerRun> smallest_runs(const Network& network);

// Cuts costs into `parts` consecutive groups, none empty, whose largest sum is as small as possible, and returns the
// first index of each group. Among equally good cuts it takes those that give the earlier groups less.
// parts: 1 … costs.size().
std::vector<std::size_t> balanced_cuts(const std::vector<double>& costs, std::size_t parts);

// The stages that begin with these runs (indices into `runs`; the first is 0).
std::vector<LayerRun> stages_of(const std::vector<LayerRun>& runs, const std::vector<std::size_t>& first_runs);

// The stages that begin with the layers of these names, beside the first stage: "layer2.0.conv1", or "layer2.0" for the
// first layer whose name begins so. Throws Error (usage) for a name that the network does not have, for a layer before
// which it cannot be cut, and unless there are as many names as stages but one, in the network's order.
std::vector<LayerRun> stages_from(const Network& network, const std::vector<std::string>& names, std::size_t stages);

// The multiply-adds of each run's forward and backward pass, as costs that need no measurement.
std::vector<double> computed_costs(const Network& network, const std::vector<LayerRun>& runs);

}  // namespace paceline::train
