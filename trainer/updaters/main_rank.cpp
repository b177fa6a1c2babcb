// SPDX-License-Identifier: Apache-2.0
// `main_rank`, as in Chainer's MultiprocessParallelUpdater: the gradients are summed on the main rank, which alone
// takes the step and broadcasts its weights. Chainer leaves it to the user to divide the learning rate by the number of
// ranks; here the main rank divides the sum. With plain SGD both give the same step, and dividing the sum is also right
// for weight decay and for optimizers whose step is not proportional to the gradient.
#include <cmath>

#include "trainer/core/ranges.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

constexpr int main_rank = 0;

class MainRankUpdater : public Updater {
 public:
  using Updater::Updater;

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    const std::span<float> gradients = model_.gradients();
    StepResult result;
    {
      const Range range(Category::allreduce, reduce_, reduction_.payload_bytes(gradients.size()));
      reduction_.reduce_sum(gradients, main_rank);
      result = agree(local, stop);
    }
    if (!std::isfinite(result.score.loss_sum)) return result;
    if (collectives_.rank() == main_rank) {
      model_.memory().divide(gradients, static_cast<float>(collectives_.size()));
      apply(gradients, rate);
    }
    const Range range(Category::allreduce, broadcast_, model_.weights().size_bytes());
    collectives_.broadcast(model_.weights(), main_rank);
    return result;
  }

 private:
  const RangeName reduce_{"reduce"}, broadcast_{"broadcast"};
};

}  // namespace

const UpdaterKind main_rank_updater{.name = "main_rank",
                                    .summary = "rank 0 sums the gradients, updates the weights and broadcasts them",
                                    .make = make_of<MainRankUpdater>,
                                    .lockstep = true};

}  // namespace paceline::train
