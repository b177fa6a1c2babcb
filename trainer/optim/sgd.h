// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum m, rate η and weight decay λ; g = gradient + λ w. The position of η in the
// formula matters when η changes from one step to the next (Goyal et al., arXiv 1706.02677, section 3, equations 9 and
// 10):
//   after      v ← m v + g,             w ← w − η v     equation 9; PyTorch, Chainer's CorrectedMomentumSGD
//   inside     v ← m v + η g,           w ← w − v       equation 10; Chainer's MomentumSGD
//   corrected  v ← m (η ÷ η′) v + η g,  w ← w − v       equation 10 with momentum correction, η′ the step before's
//   rate;
//                                                       the same steps as `after`, whatever the rates
// As long as η is constant, all three take the same steps. With Nesterov's look-ahead, the last part of a step is
// instead
//   after: w ← w − η (g + m v)          inside, corrected: w ← w − (η g + m v)
#pragma once

#include <string>

#include "trainer/optim/optimizer.h"

namespace paceline::train {

enum class RatePosition { after, inside, corrected };

// Throws std::invalid_argument for an unknown name.
RatePosition rate_position_of(const std::string& name);

struct SgdOptions {
  float momentum = 0.9f;
  float weight_decay = 0;  // if Sgd is made for a number of elements; chunks have their own
  bool nesterov = false;
  RatePosition rate_position = RatePosition::after;
};

// v ← keep v + take g with g = gradient + decay w, then w ← w − (of_gradient g + of_velocity v): every form above.
// before: the rate of the step before, 0 before the first. of_gradient is 0 without look-ahead.
struct SgdFactors {
  float keep, take, of_gradient, of_velocity;
};
SgdFactors sgd_factors(const SgdOptions& options, double before, float rate);

class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Chunk> chunks, const SgdOptions& options);
  Sgd(std::size_t elements, const SgdOptions& options);  // one weight decay for all

  std::span<float> velocity() { return arrays_[0]; }

  std::string name() const override { return "sgd"; }

 protected:
  void update(std::span<float> weights, std::span<const float> gradients, float rate) override;

 private:
  SgdOptions options_;
};

}  // namespace paceline::train
