// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/fusion.h"

namespace paceline::train::cuda {

std::vector<Fusion> plan_fusions(const std::vector<Layer>& layers) {
  std::vector<int> readers(layers.size(), 0);
  for (std::size_t i = 1; i < layers.size(); ++i) {
    ++readers[static_cast<std::size_t>(layers[i].input)];
    if (layers[i].residual >= 0) ++readers[static_cast<std::size_t>(layers[i].residual)];
  }
  std::vector<Fusion> fusions(layers.size());
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const auto before = static_cast<std::size_t>(layers[i].input);
    if (before == 0 || readers[before] != 1) continue;
    const Layer& input = layers[before];
    if (layers[i].kind == LayerKind::relu && input.kind == LayerKind::convolution && input.bias) {
      fusions[before].relu = true;
      fusions[i].relu = true;
    }
    if (layers[i].kind == LayerKind::add_relu && input.kind == LayerKind::batch_norm && !input.relu) {
      fusions[before].silent = true;
      fusions[i].batch_norm = input;
      fusions[i].batch_norm_number = before;
    }
    if (layers[i].kind == LayerKind::batch_norm && input.kind == LayerKind::convolution && !input.bias) {
      fusions[before].sums_for = i;
    }
  }
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const auto before = static_cast<std::size_t>(layers[i].input);
    const Layer& input = layers[before];
    // cuDNN applies a batch norm only in a convolution that also computes sums.
    if (!fusions[i].sums_for || readers[before] != 1 || input.kind != LayerKind::batch_norm || !input.relu) continue;
    fusions[i].applies = before;
    fusions[before].applied = true;
  }
  return fusions;
}

}  // namespace paceline::train::cuda
