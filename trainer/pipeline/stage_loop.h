// SPDX-License-Identifier: Apache-2.0
// Carries out the schedule of one stage: computes its microbatches and exchanges messages with the neighbours in
// between.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/pipeline/schedule.h"
#include "trainer/pipeline/stage_links.h"

namespace paceline::train {

// What a stage computes. The spans of a microbatch stay in place from the moment at which they are asked for to the end
// of the message or of the computation that uses them.
class StageWork {
 public:
  virtual ~StageWork() = default;
  virtual void forward(std::size_t microbatch) = 0;   // from input() to output()
  virtual void backward(std::size_t microbatch) = 0;  // from output_gradient() to input_gradient()

  // Not called on the first stage.
  virtual std::span<std::byte> input(std::size_t microbatch) = 0;
  virtual std::span<const std::byte> input_gradient(std::size_t microbatch) = 0;

  // Not called on the last stage.
  virtual std::span<const std::byte> output(std::size_t microbatch) = 0;
  virtual std::span<std::byte> output_gradient(std::size_t microbatch) = 0;
};

// Returns when all steps are done and all their messages have arrived. Each rank of the chain calls it with the same
// schedule and number of microbatches.
void run_schedule(const std::vector<StageStep>& steps, StageLinks& links, StageWork& work);

}  // namespace paceline::train
