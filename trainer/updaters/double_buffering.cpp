// SPDX-License-Identifier: Apache-2.0
// `double_buffering`, as in ChainerMN: there are two sets of gradients. While an iteration computes into the first set,
// another thread, or another stream of the GPU, averages the second one, which the previous iteration computed. Then
// the step takes that average and the sets are swapped. So each step's gradient is exactly one step stale, and the
// first iteration takes no step.
#include <cmath>
#include <vector>

#include "trainer/core/ranges.h"
#include "trainer/updaters/sender.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

class DoubleBufferingUpdater : public Updater {
 public:
  explicit DoubleBufferingUpdater(const UpdaterParts& parts)
      : Updater(parts),
        memory_(parts.communicator.reduction->memory().allocate(model_.gradients().size())),
        other_(memory_.get(), model_.gradients().size()),
        sender_(parts.communicator) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    const std::span<float> computed = model_.gradients();
    StepResult result;
    {
      const Range range(Category::allreduce);  // the part that the iteration did not hide
      sender_.wait();
      result = agree(local, stop);
    }
    if (!std::isfinite(result.score.loss_sum)) return result;
    sender_.send(computed, {{0, computed.size()}}, bucket_);
    if (averaged_) apply(other_, rate);
    model_.set_gradients(other_);
    other_ = computed;
    averaged_ = true;
    return result;
  }

  bool settle(bool stop) override {
    const Range range(Category::allreduce);
    sender_.settle();
    return stop;
  }

  std::span<const float> pending() override {
    if (!averaged_) return {};
    pending_.resize(other_.size());
    reduction_.memory().copy(other_, pending_);
    return pending_;
  }

  void restore_pending(std::span<const float> average) override {
    reduction_.memory().copy(average, other_);
    averaged_ = true;
  }

 private:
  const std::shared_ptr<float> memory_;
  std::span<float> other_;      // the set that backward does not write
  bool averaged_ = false;       // whether other_ holds an average, or will when the transfer ends
  std::vector<float> pending_;  // a copy in host memory
  const RangeName bucket_{"bucket 0"};
  Sender sender_;  // last: destroyed before the objects that it uses
};

}  // namespace

const UpdaterKind double_buffering_updater{
    .name = "double_buffering",
    .summary = "the gradient is averaged during the next iteration and used in its step: one step stale",
    .make = make_of<DoubleBufferingUpdater>,
    .allreduces = true,
    .threaded = true,
    .copies = 1};

}  // namespace paceline::train
