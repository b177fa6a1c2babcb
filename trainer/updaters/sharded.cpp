// SPDX-License-Identifier: Apache-2.0
// `sharded`: the optimizer's state is divided among the ranks (ZeRO, stage 1: Rajbhandari et al., arXiv
// 1910.02054, 5.1). Each rank receives the mean gradient of its shard of the parameters (reduce-scatter), takes the
// step for that shard with its part of the momentum, and all ranks exchange their new weights (all-gather). The bytes
// sent are those of an allreduce.
#include <cmath>

#include "trainer/core/error.h"
#include "trainer/core/ranges.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

class ShardedUpdater : public Updater {
 public:
  explicit ShardedUpdater(const UpdaterParts& parts)
      : Updater(parts), halves_(collectives_.size() > 1 ? &halves_of(parts.communicator) : reduction_.sharded()) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    const std::span<float> gradients = model_.gradients(), weights = model_.weights();
    StepResult result;
    {
      const Range range(Category::allreduce, reduce_scatter_, reduction_.payload_bytes(gradients.size()));
      if (halves_ != nullptr) halves_->reduce_scatter_mean(gradients);
      result = agree(local, stop);
    }
    if (!std::isfinite(result.score.loss_sum)) return result;
    const Slice own = optimizer_.shard();
    apply(gradients.subspan(own.first, own.count), rate);
    if (halves_ == nullptr) return result;  // one rank
    const Range range(Category::allreduce, all_gather_, weights.size_bytes());
    halves_->all_gather(weights);
    return result;
  }

 private:
  double squares_of(std::span<const float> gradient) override {
    double sum = Updater::squares_of(gradient);
    collectives_.allreduce_sum({&sum, 1});
    return sum;
  }

  ShardedReduction* const halves_;  // null: one rank
  const RangeName reduce_scatter_{"reduce-scatter"}, all_gather_{"all-gather"};
};

}  // namespace

ShardedReduction& halves_of(const Communicator& communicator) {
  if (ShardedReduction* const halves = communicator.reduction->sharded()) return *halves;
  throw Error("‹updater› sharded", "this communicator has no reduce-scatter on this device",
              "take ‹communicator› mpi or ring on CPUs, pure_nccl on GPUs", Status::usage);
}

const UpdaterKind sharded_updater{
    .name = "sharded",
    .summary = "each rank keeps the optimizer's state of a part of the weights: reduce-scatter, step, all-gather",
    .make = make_of<ShardedUpdater>,
    .allreduces = true,
    .lockstep = true,
    .shards_optimizer = true};

}  // namespace paceline::train
