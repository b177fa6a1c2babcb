// SPDX-License-Identifier: Apache-2.0
// The code that the CPU backend chooses for the layers of a network.
#pragma once

#include <string>
#include <vector>

#include "trainer/backend/cpu/layers.h"
#include "trainer/nn/network.h"

namespace paceline::train {

struct Choice {
  std::string layer;  // in words, with its shapes
  std::string computation, implementation;
  double multiply_adds;  // of a batch; 0 for layers without weights
};

// Equal layers appear once. Needs no memory for tensors and runs nothing.
std::vector<Choice> choices_of(const Network& network, std::int64_t batch, onednn::Type type);

}  // namespace paceline::train
