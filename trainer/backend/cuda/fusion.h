// Which layers compute together.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "trainer/nn/network.h"

namespace paceline::train::cuda {

// What a layer does for its neighbours, so that what is in registers need not go through memory.
struct Fusion {
  bool relu = false;                // a convolution: the next layer's ReLU
  bool silent = false;              // this layer: another one does its work
  std::optional<Layer> batch_norm;  // an add_relu: of the batch norm whose result it adds to, with its number
  std::size_t batch_norm_number = 0;
};

// By layer. Two patterns: convolution with a bias → relu, and batch norm → add_relu, where nobody else reads what is
// between.
std::vector<Fusion> plan_fusions(const std::vector<Layer>& layers);

}  // namespace paceline::train::cuda
