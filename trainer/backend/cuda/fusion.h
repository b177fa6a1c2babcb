// SPDX-License-Identifier: Apache-2.0
// The fusion of neighbouring layers.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "trainer/nn/network.h"

namespace paceline::train::cuda {

// Operations of neighbouring layers that one kernel does together, so that values stay in registers and do not go
// through memory.
struct Fusion {
  bool relu = false;                // a convolution: the next layer's ReLU
  bool silent = false;              // another layer does this one's work
  std::optional<Layer> batch_norm;  // an add_relu: of the batch norm whose result it adds to, with its number
  std::size_t batch_norm_number = 0;

  // Fusions for which cuDNN has kernels, in some types and on some GPUs (convolution.cpp). A convolution without a
  // bias: the batch norm whose sums it computes while it writes, and the one, with a ReLU, that it applies while it
  // reads. A batch norm: whether a convolution applies it.
  std::optional<std::size_t> sums_for, applies;
  bool applied = false;
};

// By layer, for pairs without another reader of the intermediate tensor: convolution with a bias → relu, batch norm →
// add_relu, convolution → batch norm, batch norm with a ReLU → convolution → batch norm.
std::vector<Fusion> plan_fusions(const std::vector<Layer>& layers);

}  // namespace paceline::train::cuda
