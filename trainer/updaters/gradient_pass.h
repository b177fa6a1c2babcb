// One rank's gradient of the mean loss over its batch, in one pass or in several smaller ones that are added up.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/slice.h"
#include "trainer/data/loader.h"
#include "trainer/nn/model.h"

namespace paceline::train {

struct PassOptions {
  std::uint64_t seed = 1;
  int rank = 0;
  std::size_t batch = 1;               // images a pass, the model's batch size
  std::chrono::milliseconds delay{0};  // a fault: added to each iteration's first forward pass
};

// Forward over `samples` of a batch's images, from its `first` on, in the form that the batch has them.
Score forward(Model& model, const Batch& batch, std::size_t first, std::size_t samples, Mode mode);

// Tells the model what the forward() after the next one will be: the first `samples` of this batch.
void prefetch(Model& model, const Batch& batch, std::size_t samples);

// The positions of the flat buffers that parameter `index` takes, including the padding up to the next parameter.
Slice slice_of_parameter(Model& model, std::size_t index);

class GradientPass {
 public:
  using Ready = std::function<void(std::size_t first, std::size_t count)>;  // parameters, as Model::gradients_ready

  // The model must outlive it.
  GradientPass(Model& model, const PassOptions& options);

  // batch: a multiple of the model's batch size. Leaves d(Σ loss ÷ images of the batch) in the model's gradients:
  // the sum over the passes, each scaled alike, which is the gradient of one large batch where batch norms are frozen;
  // otherwise each pass normalises with its own statistics. `ready` is called during the last pass's backward.
  // Dropout's masks are a function of seed, rank, iteration and pass.
  Score run(const Batch& batch, std::uint64_t iteration, const Ready& ready = {});

  // After run() with `ready`: whether the model wishes its last backward repeated, and that, with the same sum of the
  // passes before it. It may be repeated where the model does not wish it, for another rank's.
  bool wants_again() const { return model_.wants_backward_again(); }
  void again(const Ready& ready);

  // After run(): where the first number that is not finite came up, if the loss is not finite.
  const std::string& nonfinite_layer() const { return nonfinite_layer_; }

 private:
  void last_backward(const Ready& ready);
  void add_earlier_passes(std::size_t first, std::size_t count);

  Model& model_;
  const PassOptions options_;
  Memory::Values earlier_storage_;
  std::span<float> earlier_;  // sum over the passes before the last
  float scale_ = 1;           // of the last run
  bool several_ = false;      // passes
  std::string nonfinite_layer_;
};

}  // namespace paceline::train
