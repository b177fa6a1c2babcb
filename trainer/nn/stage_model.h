// SPDX-License-Identifier: Apache-2.0
// A stage of a pipeline: some consecutive layers of a network, as a model of their own. forward() of a stage behind the
// first takes the result of the stage before it as its images. Only the last stage knows a loss; the others return an
// empty score. Values travel between stages in fp32, samples × channels × height × width.
#pragma once

#include <span>

#include "trainer/nn/model.h"

namespace paceline::train {

class StageModel : public Model {
 public:
  // The result of the last forward(), valid until the next one. Empty on the last stage.
  virtual std::span<float> output() = 0;

  // The caller writes the gradient of output() here before backward(). Empty on the last stage.
  virtual std::span<float> output_gradient() = 0;

  // The gradient of the images, valid from one backward() to the next forward(). Empty on the first stage.
  virtual std::span<float> input_gradient() = 0;
};

}  // namespace paceline::train
