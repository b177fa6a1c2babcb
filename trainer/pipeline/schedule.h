// SPDX-License-Identifier: Apache-2.0
// The order in which a stage of a pipeline computes its microbatches.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace paceline::train {

struct StageStep {
  enum class Kind { forward, backward } kind = Kind::forward;
  std::size_t microbatch = 0;
  bool operator==(const StageStep&) const = default;
};

std::vector<std::string> schedule_names();  // gpipe, 1f1b

// gpipe (Huang et al., arXiv 1811.06965): all forward passes, then all backward passes. 1f1b (Narayanan et al., arXiv
// 1806.03377, with a flush in each iteration): a stage begins with enough forward passes to give the stages after it
// work. Then it does a backward and a forward pass in turn, so that it keeps the activations of at most stages − stage
// microbatches. Both take the microbatches in ascending order, so that they add the same gradients in the same order.
// Throws std::invalid_argument for another name.
std::vector<StageStep> stage_schedule(const std::string& name, std::size_t stage, std::size_t stages,
                                      std::size_t microbatches);

// The largest number of microbatches whose forward pass has begun and whose backward pass has not ended.
std::size_t most_in_flight(const std::vector<StageStep>& schedule);

}  // namespace paceline::train
