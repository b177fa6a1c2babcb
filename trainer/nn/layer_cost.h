// SPDX-License-Identifier: Apache-2.0
// What a layer has to compute and to move at least, so that a profiler can compare its time with the machine's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "trainer/nn/network.h"

namespace paceline::train {

// For one image.
struct PassCost {
  double flops = 0;  // 2 × multiply-adds of convolutions and linear layers, by the direct algorithm; 0 of other layers
  double bytes = 0;  // each tensor that the pass reads or writes counts once
};

struct LayerCost {
  PassCost forward, backward;
};

// "convolution 3×3", "batch norm", "ReLU", …
std::string kind_name(const Layer& layer);

// The weights and their gradient, which is fp32, are moved once for a batch of `batch` images. element: bytes of the
// other numbers. data_gradient: whether backward computes the gradient of the layer's input.
LayerCost cost_of(const Layer& layer, bool data_gradient, std::int64_t batch, std::size_t element);

}  // namespace paceline::train
