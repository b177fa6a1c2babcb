// SPDX-License-Identifier: Apache-2.0
// Layer-wise adaptive rate scaling (You, Gitman and Ginsburg, arXiv 1708.03888, algorithm 1): each parameter tensor has
// its own rate, computed from the norms of its weights w and its gradient g:
//   λ = η ‖w‖ ÷ (‖g‖ + β ‖w‖ + 1e-9),  v ← m v + γ λ (g + β w),  w ← w − v
// with γ the schedule's rate, m the momentum, β the weight decay, η the trust coefficient. If ‖w‖ ≤ threshold, λ = η:
// without this rule a tensor of zeros would stay zero for ever. The default threshold is 0; Chainer's GradientLARS has
// 1e-2, and folds η into its rate, which is γ η. Tensors that are excluded from weight decay have no λ either: v ← m v
// + γ g, as in MLPerf's SGD with LARS. v is not corrected when γ changes: the rate stands inside v, as in the paper.
#pragma once

#include "trainer/optim/optimizer.h"

namespace paceline::train {

struct LarsOptions {
  float momentum = 0.9f;
  double trust = 0.001;
  double threshold = 0;
};

class Lars final : public Optimizer {
 public:
  Lars(std::vector<Chunk> chunks, const LarsOptions& options);

  // λ ÷ η of each parameter in the last step; 1 for the excluded.
  const std::vector<double>& local_rates() const { return local_; }

  std::string name() const override { return "lars"; }

 protected:
  void update(std::span<float> weights, std::span<const float> gradients, float rate) override;

 private:
  LarsOptions options_;
  std::vector<double> weight_squares_, gradient_squares_;  // by chunk
  std::vector<double> local_;                              // by parameter
};

}  // namespace paceline::train
