// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/loss_scale.h"

#include <algorithm>

namespace paceline::train::cuda {

bool LossScale::repeat(bool overflow) {
  if (overflow) {
    steps_ = 0;
    if (factor_ <= least) return false;
    factor_ = std::max(least, factor_ / 2);
    return true;
  }
  if (++steps_ >= patience) {
    steps_ = 0;
    factor_ = std::min(most, factor_ * 2);
  }
  return false;
}

}  // namespace paceline::train::cuda
