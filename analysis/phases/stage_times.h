// SPDX-License-Identifier: Apache-2.0
// What a rank of a pipeline computed in each iteration, and the parts that its network can be cut into.
//
// The trainer has a range of the category `stage` for an iteration's work of a stage, with ranges `forward` and
// `backward` of microbatches inside, and a mark of the category `part` for each part of the network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/phases/iterations.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct StageIteration {
  std::int64_t number = 0;                // of the iteration
  std::int64_t length_ns = 0;             // of the range `stage`: first forward to last backward on this rank
  std::int64_t busy_ns = 0;               // of them in `forward` and `backward`
  std::int64_t start_ns = 0, end_ns = 0;  // of the range
};

// A part of the network that no stage divides.
struct NetworkPart {
  std::string first_layer;
  double cost = 0;  // relative to that of the other parts
};

struct StageTimes {
  std::vector<StageIteration> iterations = {};  // finished ones, in order
  std::vector<NetworkPart> parts = {};          // of the whole network, in its order
};

// Empty for a rank without stages. `iterations`: of the rank. Cost: linear in the main thread's slices and marks.
StageTimes stage_times(const Trace& trace, const Rank& rank, const std::vector<Iteration>& iterations);

}  // namespace paceline::analysis
