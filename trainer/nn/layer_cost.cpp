// SPDX-License-Identifier: Apache-2.0
#include "trainer/nn/layer_cost.h"

namespace paceline::train {

std::string kind_name(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::input:
      return "input";
    case LayerKind::convolution:
      return "convolution " + std::to_string(layer.kernel) + "×" + std::to_string(layer.kernel);
    case LayerKind::batch_norm:
      return layer.relu ? "batch norm and ReLU" : "batch norm";
    case LayerKind::relu:
      return "ReLU";
    case LayerKind::add_relu:
      return "sum and ReLU";
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      return "pooling";
    case LayerKind::linear:
      return "linear";
    case LayerKind::dropout:
      return "dropout";
  }
  return {};
}

LayerCost cost_of(const Layer& layer, bool data_gradient, std::int64_t batch, std::size_t element) {
  const auto number = static_cast<double>(element);
  const double in = number * static_cast<double>(layer.in.size()), out = number * static_cast<double>(layer.out.size());
  const double products = layer.multiply_adds();
  double weights = 0;
  for (const ParameterShape& parameter : layer.parameters()) {
    double size = 1;
    for (const std::int64_t extent : parameter.shape) size *= static_cast<double>(extent);
    weights += size / static_cast<double>(batch);
  }
  LayerCost cost{{2 * products, in + out}, {(data_gradient ? 4 : 2) * products, in + out}};
  switch (layer.kind) {
    case LayerKind::convolution:
    case LayerKind::linear:
      cost.forward.bytes += number * weights;
      cost.backward.bytes += sizeof(float) * weights;
      if (data_gradient) cost.backward.bytes += in + number * weights;
      break;
    case LayerKind::batch_norm:
    case LayerKind::relu:
    case LayerKind::dropout:
      cost.backward.bytes += in;  // the input or the mask, beside both gradients
      break;
    case LayerKind::add_relu:
      cost.forward.bytes += in;  // the second summand
      cost.backward.bytes += in;
      break;
    default:
      break;
  }
  return cost;
}

}  // namespace paceline::train
