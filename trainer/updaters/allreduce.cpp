// SPDX-License-Identifier: Apache-2.0
// `allreduce`: in every iteration each rank computes the gradient of its batch's mean loss, the gradients are averaged
// over the ranks, and each rank takes one step of the optimizer. All ranks take the same step from the same weights, so
// their weights stay equal to the bit.
//
// `single` is the same on one rank, whose own gradient is the mean.
#include <cmath>

#include "trainer/core/ranges.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

class AllreduceUpdater : public Updater {
 public:
  using Updater::Updater;

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    StepResult result;
    {
      const std::span<float> gradients = model_.gradients();
      const Range range(Category::allreduce, reduction_.payload_bytes(gradients.size()));
      reduction_.allreduce_gradient(gradients, 0, gradients.size());
      result = agree(local, stop);
    }
    if (std::isfinite(result.score.loss_sum)) apply(model_.gradients(), rate);
    return result;
  }
};

}  // namespace

const UpdaterKind single_updater{.name = "single",
                                 .summary = "one rank, no communication",
                                 .make = make_of<AllreduceUpdater>,
                                 .one_rank = true,
                                 .lockstep = true,
                                 .only_f32 = "sends no gradients in {}"};

const UpdaterKind allreduce_updater{.name = "allreduce",
                                    .summary = "the whole gradient is averaged after backward",
                                    .make = make_of<AllreduceUpdater>,
                                    .allreduces = true,
                                    .lockstep = true,
                                    .pipelines = true};

}  // namespace paceline::train
