// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/updater.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "trainer/core/ranges.h"

namespace paceline::train {

StepResult Updater::agree(const Score& local, bool stop, bool again) {
  std::array sums = {local.loss_sum,
                     static_cast<double>(local.correct),
                     static_cast<double>(local.samples),
                     static_cast<double>(local.in_top_5),
                     stop ? 1.0 : 0.0,
                     again ? 1.0 : 0.0};
  collectives_.allreduce_sum(sums);
  StepResult result;
  result.score = {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2]),
                  static_cast<std::int64_t>(sums[3])};
  result.stop = sums[4] > 0;
  result.again = sums[5] > 0;
  return result;
}

void Updater::apply(std::span<float> gradient, double rate) {
  const Range range(Category::optimizer);
  if (clip_norm_ || measure_norm_) {
    const double squares = squares_of(gradient);
    gradient_norm_ = std::sqrt(squares);
    const double divisor = clip_norm_ ? clip_divisor(squares, *clip_norm_) : 1;
    if (divisor != 1) model_.memory().divide(gradient, static_cast<float>(divisor));
  }
  const Slice own = optimizer_.shard();
  optimizer_.step(model_.weights().subspan(own.first, own.count), gradient, static_cast<float>(rate));
}

std::string nonfinite_loss(std::uint64_t iteration, double rate, const std::string& layer) {
  return fmt::format(
      "the loss is no longer a finite number in iteration {}, at learning rate {:.3g}{}: lower ‹lr› or add "
      "‹warmup-epochs›",
      iteration, rate, layer.empty() ? "" : fmt::format(", from layer {} on", layer));
}

std::unique_ptr<Updater> make_updater(const std::string& name, const UpdaterParts& parts) {
  return updater_kind(name).make(parts);
}

}  // namespace paceline::train
