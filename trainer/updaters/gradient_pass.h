// SPDX-License-Identifier: Apache-2.0
// One rank's gradient of the mean loss over its batch, in one pass or in several smaller ones that are added up.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "trainer/core/slice.h"
#include "trainer/data/loader.h"
#include "trainer/nn/model.h"

namespace paceline::train {

struct PassOptions {
  std::uint64_t seed = 1;
  int rank = 0;
  std::size_t batch = 1;               // images in a pass: the model's batch size
  std::chrono::milliseconds delay{0};  // an injected fault: added to each iteration's first forward pass
  // An injected fault: added to the forward pass of each microbatch of a pipeline, and twice to its backward pass.
  std::chrono::nanoseconds stage_delay{0};
};

// Runs forward over `samples` images of a batch, from `first` on, in the form in which the batch stores them.
Score forward(Model& model, const Batch& batch, std::size_t first, std::size_t samples, Mode mode);

// Announces to the model the first `samples` images of the batch that follows the current one.
void prefetch(Model& model, const Batch& batch, std::size_t samples);

// The positions of the flat buffers that parameter `index` takes, including the padding up to the next parameter.
Slice slice_of_parameter(Model& model, std::size_t index);

class GradientPass {
 public:
  using Ready = std::function<void(std::size_t first, std::size_t count)>;  // parameters, as Model::gradients_ready

  // The model must outlive it.
  GradientPass(Model& model, const PassOptions& options);

  // Leaves d(Σ loss ÷ images of the batch) in the model's gradients. A batch may hold several times the model's batch
  // size; it then takes several passes, whose gradients are added with the same scale. With frozen batch norms the sum
  // is the gradient of one large batch; otherwise each pass normalises with its own statistics. The backward of the
  // last pass calls `ready`. Dropout masks depend on seed, rank, iteration and pass only.
  Score run(const Batch& batch, std::uint64_t iteration, const Ready& ready = {});

  // After run() with `ready`: wants_again() returns whether the model asks to repeat its last backward, and again()
  // repeats it with the same sum of the earlier passes. A rank whose model does not ask may repeat it too, because
  // another rank must.
  bool wants_again() const { return model_.wants_backward_again(); }
  void again(const Ready& ready);

  // After run() with a loss that is not finite: the layer in which the first value that is not finite appeared.
  const std::string& nonfinite_layer() const { return nonfinite_layer_; }

 private:
  void last_backward(const Ready& ready);
  void add_earlier_passes(std::size_t first, std::size_t count);

  Model& model_;
  const PassOptions options_;
  Memory::Values earlier_storage_;
  std::span<float> earlier_;  // sum over the passes before the last
  float scale_ = 1;           // of the last run()
  bool several_ = false;      // passes
  std::string nonfinite_layer_;
};

}  // namespace paceline::train
