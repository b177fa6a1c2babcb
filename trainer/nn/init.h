// SPDX-License-Identifier: Apache-2.0
// Initial weights. They depend on the seed, the parameter's name and its shape alone, so that every rank, backend and
// layout starts from the same network.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/nn/network.h"

namespace paceline::train {

// Convolutions: normal of variance 2 / (kernel² × output channels), the fan-out form of He et al. (arXiv 1502.01852).
// Linear layers: normal of deviation 0.01. Batch norms: scale 1, or 0 with Layer::zero_scale (Goyal et al., arXiv
// 1706.02677, 5.1). Biases and shifts: 0. The values are in the published layout.
std::vector<float> initial_values(const Layer& layer, const ParameterShape& parameter, std::uint64_t seed);

}  // namespace paceline::train
