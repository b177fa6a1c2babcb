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

  // What cuDNN has kernels for, in some types and on some GPUs (convolution.cpp). A convolution without a bias: the
  // batch norm whose sums it can gather as it writes, and the one, with a ReLU, that it can apply as it reads. A batch
  // norm: whether a convolution can apply it.
  std::optional<std::size_t> sums_for, applies;
  bool applied = false;
};

// By layer, where nobody else reads what is between: convolution with a bias → relu, batch norm → add_relu, convolution
// → batch norm, batch norm with a ReLU → convolution → batch norm.
std::vector<Fusion> plan_fusions(const std::vector<Layer>& layers);

}  // namespace paceline::train::cuda
