// SPDX-License-Identifier: Apache-2.0
// What updaters that compress gradients share: error feedback and its place in checkpoints.
//
// Each rank adds to its gradient what compression has left out so far, and keeps what it leaves out now (Karimireddy et
// al., arXiv 1901.09847, algorithm 2, on gradients).
#pragma once

#include <cmath>
#include <vector>

#include "trainer/core/ranges.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {

class CompressedUpdater : public Updater {
 public:
  explicit CompressedUpdater(const UpdaterParts& parts) : Updater(parts), residual_(model_.gradients().size(), 0.0f) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    const std::span<float> gradient = model_.gradients();
    model_.memory().add(std::span<const float>(residual_), gradient);
    const StepResult result = average(local, stop);
    if (std::isfinite(result.score.loss_sum)) apply(gradient, rate);
    return result;
  }

  // The ranks meet with one residual, their mean, so that a run that resumes from a checkpoint goes on with the same
  // bits.
  bool settle(bool stop) override {
    const Range range(Category::allreduce, mean_residual_, reduction_.payload_bytes(residual_.size()));
    reduction_.allreduce_mean(residual_);
    return stop;
  }
  std::span<const float> pending() override { return residual_; }
  void restore_pending(std::span<const float> residual) override { residual_.assign(residual.begin(), residual.end()); }

 protected:
  // Replaces the model's gradients, which hold this rank's gradient and residual, by the compressed mean over the
  // ranks, with the same bits on every rank, and sets the residual. Calls agree() at the point where the ranks wait for
  // each other.
  virtual StepResult average(const Score& local, bool stop) = 0;

  std::vector<float> residual_;
  const RangeName compress_{"compress"}, decompress_{"decompress"};  // local work: Category::optimizer

 private:
  const RangeName mean_residual_{"mean of the residuals"};
};

}  // namespace paceline::train
