// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/pipelined_updater.h"

#include <cmath>

#include "trainer/core/ranges.h"

namespace paceline::train {
namespace {

class PipelinedUpdater : public Updater {
 public:
  PipelinedUpdater(const UpdaterParts& parts, Pipeline& pipeline, int replicas)
      : Updater(parts), pipeline_(pipeline), replicas_(replicas) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pipeline_.run(batch, iteration);
    StepResult result;
    {
      const std::span<float> gradients = model_.gradients();
      const Range range(Category::allreduce, replicas_ > 1 ? reduction_.payload_bytes(gradients.size()) : 0);
      if (replicas_ > 1) reduction_.allreduce_gradient(gradients, 0, gradients.size());
      result = agree(local, stop);
    }
    if (std::isfinite(result.score.loss_sum)) apply(model_.gradients(), rate);
    return result;
  }

  const std::string& nonfinite_layer() const override { return pipeline_.nonfinite_layer(); }

 private:
  // The stages have different parameters, and all replicas of a stage have the same gradient.
  double squares_of(std::span<const float> gradient) override {
    double sum = Updater::squares_of(gradient);
    collectives_.allreduce_sum({&sum, 1});
    return sum / replicas_;
  }

  Pipeline& pipeline_;
  const int replicas_;
};

}  // namespace

std::unique_ptr<Updater> make_pipelined_updater(const UpdaterParts& parts, Pipeline& pipeline, int replicas) {
  return std::make_unique<PipelinedUpdater>(parts, pipeline, replicas);
}

}  // namespace paceline::train
