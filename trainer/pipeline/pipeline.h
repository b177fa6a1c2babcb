// SPDX-License-Identifier: Apache-2.0
// One rank's stage of a pipeline: passes the microbatches of a batch through its layers, forward and backward, and adds
// up their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/core/ranges.h"
#include "trainer/data/loader.h"
#include "trainer/nn/network.h"
#include "trainer/nn/stage_model.h"
#include "trainer/pipeline/stage_loop.h"
#include "trainer/updaters/gradient_pass.h"

namespace paceline::train {

class Pipeline : private StageWork {
 public:
  // model: the stage's layers, for batches of one microbatch; further models, as many as the schedule needs, share its
  // weights and hold the activations of other microbatches. part, model_options: what the model was made from. pass:
  // the rank is the replica's number, and the batch is a microbatch. All arguments must outlive the pipeline.
  Pipeline(StageModel& model, const Network& part, const ModelOptions& model_options, StageLinks& links,
           const std::string& schedule, std::size_t microbatches, const PassOptions& pass);

  // Leaves d(Σ loss ÷ images of the batch) of this stage's parameters in the model's gradients. The batch has
  // `microbatches` times the model's batch size images; stages behind the first use its labels alone. A microbatch's
  // batch norms use its own statistics. Returns the score on the last stage and an empty one on the others. A
  // collective call over the chain.
  Score run(const Batch& batch, std::uint64_t iteration);

  // Scores images of a batch, at most a microbatch of them, without training. As run() does.
  Score evaluate(const Batch& batch);

  // After run(): the layer of this stage whose result in the first microbatch with such a result is not finite; empty
  // if the results that this stage handed on are finite.
  const std::string& nonfinite_layer() const { return nonfinite_layer_; }

  std::size_t models() const { return 1 + more_.size(); }  // that hold activations
  std::size_t unfilled_bytes() const;                      // of all of them

 private:
  StageModel& model_of(std::size_t microbatch);
  Score forward_images(StageModel& model, const Batch& batch, std::size_t first, std::size_t samples, Mode mode);
  void add_gradient(std::size_t microbatch);

  void forward(std::size_t microbatch) override;
  void backward(std::size_t microbatch) override;
  std::span<std::byte> input(std::size_t) override { return std::as_writable_bytes(std::span(input_)); }
  std::span<const std::byte> input_gradient(std::size_t microbatch) override;
  std::span<const std::byte> output(std::size_t microbatch) override;
  std::span<std::byte> output_gradient(std::size_t microbatch) override;

  StageModel& model_;
  StageLinks& links_;
  const std::size_t microbatches_;
  const PassOptions pass_;
  const std::vector<StageStep> schedule_;
  std::vector<std::unique_ptr<StageModel>> more_;
  std::vector<float> input_;  // of the next microbatch, from the stage before; empty on the first stage
  Memory::Values earlier_;    // sum of the gradients of earlier microbatches; null with one microbatch
  const RangeName range_;

  // Of the current run().
  const Batch* batch_ = nullptr;
  std::uint64_t iteration_ = 0;
  Score score_;
  std::string nonfinite_layer_;
};

}  // namespace paceline::train
