// SPDX-License-Identifier: Apache-2.0
// `local_sgd`: each rank takes steps with its own gradients, and every H steps the ranks average their weights (Stich,
// arXiv 1805.09767, algorithm 1). The optimizer's arrays are averaged with them (Yu, Jin and Yang, arXiv 1905.03817,
// algorithm 1), so that all ranks then have one state, which a checkpoint can hold. With H = 1 and momentum SGD, whose
// step is linear in gradient and momentum, the steps are those of `allreduce` but for rounding.
#include <cmath>

#include "trainer/core/error.h"
#include "trainer/core/ranges.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

constexpr UpdaterOption local_steps{.key = "local-steps",
                                    .help = "steps of each rank between two averages of the weights",
                                    .whole = true,
                                    .least = 1,
                                    .most = 0x1p40,
                                    .standard = 8};

class LocalSgdUpdater : public Updater {
 public:
  explicit LocalSgdUpdater(const UpdaterParts& parts)
      : Updater(parts), local_steps_(static_cast<std::uint64_t>(*parts.value(local_steps))) {}

  StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) override {
    StepResult result;
    result.score = pass_.run(batch, iteration);
    stop_ = stop_ || stop;
    if (!std::isfinite(result.score.loss_sum)) {
      throw Error(nonfinite_loss(iteration, rate, pass_.nonfinite_layer()));  // the other ranks cannot know
    }
    apply(model_.gradients(), rate);
    differs_ = true;
    if ((iteration + 1) % local_steps_ == 0) result.stop = average();
    return result;
  }

  bool settle(bool stop) override {
    stop_ = stop_ || stop;
    return average();
  }

  bool asynchronous() const override { return true; }

 private:
  // Returns whether any rank asked to stop.
  bool average() {
    const std::span<float> weights = model_.weights();
    std::vector<std::vector<float>>& arrays = optimizer_.arrays();
    const std::size_t bytes = differs_ ? (1 + arrays.size()) * weights.size_bytes() : 0;
    const Range range(Category::allreduce, name_, bytes);
    if (differs_) {
      reduction_.allreduce_mean(weights);
      for (std::vector<float>& array : arrays) reduction_.allreduce_mean(array);
      differs_ = false;
    }
    double stops = stop_ ? 1 : 0;
    collectives_.allreduce_sum({&stops, 1});
    stop_ = stops > 0;
    return stop_;
  }

  const std::uint64_t local_steps_;
  bool differs_ = false;  // whether the ranks have taken a step since the last average
  bool stop_ = false;     // asked for since then
  const RangeName name_{"average of the weights"};
};

}  // namespace

const UpdaterKind local_sgd_updater{
    .name = "local_sgd",
    .summary = "each rank takes its own steps, and the weights are averaged every --local-steps",
    .make = make_of<LocalSgdUpdater>,
    .options = {&local_steps, 1},
    .allreduces = true,
    .only_f32 = "averages weights, which {} would round",
    .on_gpus = false};

}  // namespace paceline::train
