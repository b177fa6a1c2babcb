// SPDX-License-Identifier: Apache-2.0
// `majority`: the ranks vote on the sign of each value of the gradient, and every step has one size (signSGD with
// majority vote: Bernstein et al., arXiv 1802.04434, algorithm 1).
#include <algorithm>
#include <cmath>

#include "trainer/core/ranges.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

constexpr UpdaterOption vote_size{.key = "vote-size",
                                  .help = "size of a step in units of the learning rate",
                                  .least = 1e-6,
                                  .most = 1e6,
                                  .standard = 1};

float vote(float value) { return static_cast<float>((value > 0) - (value < 0)); }

class MajorityUpdater : public Updater {
 public:
  explicit MajorityUpdater(const UpdaterParts& parts)
      : Updater(parts), size_(static_cast<float>(*parts.value(vote_size))) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    const Score local = pass_.run(batch, iteration);
    const std::span<float> gradient = model_.gradients();
    std::ranges::transform(gradient, gradient.begin(), vote);
    StepResult result;
    {
      const Range range(Category::allreduce, reduction_.payload_bytes(gradient.size()));
      reduction_.allreduce_gradient(gradient, 0, gradient.size());
      result = agree(local, stop);
    }
    std::ranges::transform(gradient, gradient.begin(), [this](float mean) { return size_ * vote(mean); });
    if (std::isfinite(result.score.loss_sum)) apply(gradient, rate);
    return result;
  }

 private:
  const float size_;
};

}  // namespace

extern const UpdaterKind majority_updater;  // PACELINE_UPDATER(majority) in updaters.def declares it
const UpdaterKind majority_updater{.name = "majority",
                                   .summary = "each rank sends the signs of its gradient, and the majority decides",
                                   .make = make_of<MajorityUpdater>,
                                   .options = {&vote_size, 1},
                                   .allreduces = true,
                                   .lockstep = true,
                                   .on_gpus = false};

}  // namespace paceline::train
