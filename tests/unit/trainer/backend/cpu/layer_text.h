// SPDX-License-Identifier: Apache-2.0
// A layer's kind and shapes in words.
#pragma once

#include <string>

#include "trainer/nn/network.h"

namespace paceline::train {

// For example "convolution 3x3/2 of 64x56x56 to 128x28x28".
inline std::string text_of(const Layer& layer) {
  const auto shape = [](const Shape& s) {
    return std::to_string(s.channels) + "x" + std::to_string(s.height) + "x" + std::to_string(s.width);
  };
  static constexpr const char* kinds[]{"input",    "convolution",  "batch norm", "relu",   "add_relu",
                                       "max pool", "average pool", "linear",     "dropout"};
  std::string text = kinds[static_cast<int>(layer.kind)];
  if (layer.kernel > 1 || layer.stride > 1) {
    text +=
        " " + std::to_string(layer.kernel) + "x" + std::to_string(layer.kernel) + "/" + std::to_string(layer.stride);
  }
  text += " of " + shape(layer.in) + " to " + shape(layer.out) + (layer.bias ? " with bias" : "");
  return text + (layer.relu ? " and ReLU" : "");
}

}  // namespace paceline::train
