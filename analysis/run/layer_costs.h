// SPDX-License-Identifier: Apache-2.0
// What the layers of a network compute and move, as a program states it, and how long they took.
//
// A program states the costs of its layers in marks of the category `layers` (docs/metrics.md). A slice of the main
// thread that has the name of such a layer, and lies in an iteration's forward or backward, is a pass of that layer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/index/correlations.h"
#include "analysis/phases/iterations.h"

namespace paceline::analysis {

// The layers of one kind in one direction.
struct LayerWork {
  std::string kind;         // "convolution 3×3"
  bool backward = false;    // else forward
  double flops = 0;         // of one image
  double bytes = 0;         // likewise
  double iteration_ns = 0;  // mean time in an iteration
};

struct LayerCosts {
  std::vector<LayerWork> work = {};
  // What the program says that the rank's devices can do at most in a second.
  std::optional<double> peak_flops = {}, peak_bytes = {};
};

// Of a rank, over its complete iterations without the first tenth. With work on devices (`correlations` is not null), a
// pass takes the time of the work that was launched from inside its slice. Empty where the program states no costs.
// Cost: linear in the main thread's slices and marks, and n log n in the work on devices.
LayerCosts layer_costs(const PhaseTable& table, const Rank& rank, const std::vector<Iteration>& iterations,
                       const Correlations* correlations);

// The sum of the ranks' work, joined by kind and direction, the longest time first.
std::vector<LayerWork> sum_of_work(std::span<const LayerCosts* const> ranks);

}  // namespace paceline::analysis
