// SPDX-License-Identifier: Apache-2.0
// RMSprop warm-up (Akiba, Suzuki and Fukuda, arXiv 1711.04325, section 3.1): a transition from RMSprop to momentum SGD
// over the first epochs. With g = gradient + λ w and η the schedule's rate (the paper's is slow start):
//   m ← μ₂ m + (1 − μ₂) g²,  Δ ← μ₁ Δ − (α_SGD + α_RMSprop ÷ (√m + ε)) g,  w ← w + η Δ
//   α_SGD(e) = ½ exp(2 (e − c) ÷ p) before epoch c, then ½ + s (e − c) to epoch c + p ÷ 2, then 1
//   α_RMSprop = (1 − α_SGD) η_RMSprop ÷ η
// The slope s is printed as 2 ÷ p, with which α_SGD rises to 1.5 (and α_RMSprop below 0) and jumps back to 1 at e = c +
// p ÷ 2. With 1 ÷ p it matches the exponential's slope at c and reaches 1 at c + p ÷ 2, so that the function is
// continuous, as in one of the public implementations. This is the default here; `printed_slope` selects the slope as
// printed.
#pragma once

#include "trainer/optim/optimizer.h"

namespace paceline::train {

struct RmspropWarmupOptions {
  double momentum = 0.9, rms_decay = 0.99, epsilon = 1e-8;  // μ₁, μ₂, ε
  double rms_rate = 3e-4;                                   // η_RMSprop
  double center = 10, period = 5;                           // c and p, in epochs
  bool printed_slope = false;
};

// α_SGD at an epoch.
double sgd_share(double epoch, double center, double period, bool printed_slope);

struct WarmupFactors {
  float rate, momentum, rms_decay, epsilon, sgd, rms;  // sgd: α_SGD, rms: α_RMSprop
};
WarmupFactors warmup_factors(const RmspropWarmupOptions& options, double epoch, float rate);

class RmspropWarmup final : public Optimizer {
 public:
  RmspropWarmup(std::vector<Chunk> chunks, const RmspropWarmupOptions& options)
      : Optimizer(std::move(chunks), 2, 0), options_(options) {}

  std::string name() const override { return "rmsprop_warmup"; }

 protected:
  void update(std::span<float> weights, std::span<const float> gradients, float rate) override;

 private:
  RmspropWarmupOptions options_;
};

}  // namespace paceline::train
