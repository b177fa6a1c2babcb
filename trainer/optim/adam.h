// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1), with weight decay λ in the gradient as in PyTorch's Adam (not
// decoupled as in AdamW). In step t, counted from 1, with g = gradient + λ w:
//   m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²,  w ← w − η m̂ ÷ (√v̂ + ε),  m̂ = m ÷ (1 − β₁ᵗ),  v̂ = v ÷ (1 − β₂ᵗ)
//
// AdamW (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2; PyTorch's form) decays the weights apart from the
// gradient: w ← w − η λ w comes first, then a step of Adam with g = gradient.
#pragma once

#include "trainer/optim/optimizer.h"

namespace paceline::train {

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool decoupled = false;  // AdamW
};

struct AdamFactors {
  float beta1, beta2, rate, deviation, epsilon;  // rate = η ÷ (1 − β₁ᵗ), deviation = 1 ÷ √(1 − β₂ᵗ)
};
AdamFactors adam_factors(const AdamOptions& options, double t, float rate);

class Adam final : public Optimizer {
 public:
  Adam(std::vector<Chunk> chunks, const AdamOptions& options) : Optimizer(std::move(chunks), 2, 1), options_(options) {}

  std::string name() const override { return options_.decoupled ? "adamw" : "adam"; }

 protected:
  void update(std::span<float> weights, std::span<const float> gradients, float rate) override;

 private:
  AdamOptions options_;
};

}  // namespace paceline::train
