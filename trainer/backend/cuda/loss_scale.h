// SPDX-License-Identifier: Apache-2.0
// Keeps gradients inside fp16's range, 6e-8 to 65504: the loss is multiplied by a power of two before backward, and the
// gradients of the weights, in fp32, are divided by it again (Micikevicius et al., arXiv 1710.03740, 3.2). If a
// gradient overflows, backward is repeated with half the factor from the same activations, so that no step is left out.
// Ranks do not have to agree on the factor. They must agree on the repetition if gradients are sent before the overflow
// is known. After many steps without an overflow the factor is doubled.
#pragma once

#include <cstdint>

namespace paceline::train::cuda {

class LossScale {
 public:
  static constexpr float first = 65536, most = 16777216, least = 1;  // 2¹⁶, 2²⁴, 1
  static constexpr std::int64_t patience = 2000;                     // steps without overflow before it doubles

  float factor() const { return factor_; }
  float inverse() const { return 1 / factor_; }  // exact: both are powers of two

  // Call it after a backward. Returns whether to repeat it with the new, smaller factor(). An overflow with the least
  // factor is that of the gradient itself and is kept, so that the loss shows it.
  bool repeat(bool overflow);

 private:
  float factor_ = first;
  std::int64_t steps_ = 0;  // without overflow, since the factor last changed
};

}  // namespace paceline::train::cuda
