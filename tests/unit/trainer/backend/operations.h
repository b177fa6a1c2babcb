// SPDX-License-Identifier: Apache-2.0
// Every kind of layer in several shapes with the results of the float64 reference: one table for all backends.
#pragma once

#include <ostream>
#include <random>
#include <vector>

#include "tests/unit/trainer/backend/reference/layers.h"

namespace paceline::train {

using reference::relative_error;
using reference::Tensor;
using reference::Values;

// bound: on ‖fast − reference‖₂ ÷ ‖reference‖₂ in fp32 on the CPU.
struct Operation {
  const char* name;
  Shape in;
  int (*append)(Network&);
  double bound;
  std::int64_t batch = 4;
  bool winograd = false;
  bool frozen = false;
  bool bf16 = false;

  friend void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }
};

// fp32 has a unit round-off of 6e-8. Sums grow with their length; Winograd's transforms cost another digit.
inline const Operation operations[]{
    {"stem", {3, 16, 16}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, false); }, 1e-6},
    {"stem_imagenet", {3, 32, 32}, [](Network& n) { return n.convolution("l", 0, 64, 7, 2, false); }, 1e-6},
    {"convolution_3x3", {64, 16, 16}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, false); }, 1e-6},
    {"convolution_3x3_bias", {16, 9, 9}, [](Network& n) { return n.convolution("l", 0, 32, 3, 1, true); }, 5e-7},
    {"convolution_3x3_stride", {64, 16, 16}, [](Network& n) { return n.convolution("l", 0, 128, 3, 2, false); }, 5e-7},
    {"convolution_3x3_over_2x2", {64, 2, 2}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, true); }, 1e-6},
    {"convolution_1x1", {64, 8, 8}, [](Network& n) { return n.convolution("l", 0, 256, 1, 1, false); }, 5e-7},
    {"convolution_1x1_stride", {64, 8, 8}, [](Network& n) { return n.convolution("l", 0, 128, 1, 2, false); }, 5e-7},
    {"winograd", {64, 16, 16}, [](Network& n) { return n.convolution("l", 0, 64, 3, 1, false); }, 5e-6, 8, true},
    {"winograd_bias", {64, 15, 15}, [](Network& n) { return n.convolution("l", 0, 32, 3, 1, true); }, 5e-6, 8, true},
    {"batch_norm", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, false); }, 5e-7},
    {"batch_norm_relu", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, true); }, 5e-7},
    {"batch_norm_frozen", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, false); }, 5e-7, 4, false, true},
    {"batch_norm_relu_frozen", {64, 8, 8}, [](Network& n) { return n.batch_norm("l", 0, true); }, 5e-7, 4, false, true},
    {"relu", {32, 7, 7}, [](Network& n) { return n.relu("l", 0); }, 0},
    {"add_relu", {32, 7, 7}, [](Network& n) { return n.add_relu("l", 0, 0); }, 0},
    {"max_pool", {64, 16, 16}, [](Network& n) { return n.max_pool("l", 0, 3, 2, 1); }, 1e-7},
    {"max_pool_vgg", {64, 16, 16}, [](Network& n) { return n.max_pool("l", 0, 2, 2, 0); }, 0},
    {"average_pool", {512, 4, 4}, [](Network& n) { return n.average_pool("l", 0, 4); }, 2e-7},
    {"linear", {512, 1, 1}, [](Network& n) { return n.linear("l", 0, 10); }, 5e-7},
    {"linear_without_bias", {64, 4, 4}, [](Network& n) { return n.linear("l", 0, 24, false); }, 5e-7},
    {"linear_of_an_image", {64, 7, 7}, [](Network& n) { return n.linear("l", 0, 100); }, 5e-7},
};

// float64 values that fp32 holds exactly, so that both sides compute with the same numbers.
inline Values random_values(std::size_t count, double mean, double deviation) {
  static std::mt19937_64 random(3);
  std::normal_distribution<double> normal(mean, deviation);
  Values values(count);
  for (double& value : values) value = static_cast<float>(normal(random));
  return values;
}

// A layer's result, the gradient of its input and those of its parameters.
struct Expected {
  Tensor y, dx;
  std::vector<Values> gradients;
};

// moments: those of a batch norm. frozen: they are constants.
inline Expected expected_of(const Layer& layer, const Tensor& x, Tensor dy, const std::vector<Values>& weights,
                            const reference::Moments& moments, bool frozen) {
  Expected expected{{}, {}, std::vector<Values>(2)};
  auto& [y, dx, gradients] = expected;
  const Values bias = weights.size() > 1 ? weights[1] : Values();
  switch (layer.kind) {
    case LayerKind::convolution:
      y = reference::convolution(layer, x, weights[0], bias);
      dx = reference::convolution_backward(layer, x, weights[0], dy, gradients[0], gradients[1]);
      break;
    case LayerKind::batch_norm:
      y = reference::batch_norm(x, moments, weights[0], weights[1]);
      if (layer.relu) {
        y = reference::relu(y);
        dy = reference::relu_backward(y, dy);
      }
      dx = reference::batch_norm_backward(x, moments, frozen, weights[0], dy, gradients[0], gradients[1]);
      break;
    case LayerKind::relu:
      y = reference::relu(x);
      dx = reference::relu_backward(y, dy);
      break;
    case LayerKind::add_relu:
      y = reference::relu(reference::add(x, x));
      dx = reference::relu_backward(y, dy);
      break;
    case LayerKind::max_pool:
      y = reference::max_pool(layer, x);
      dx = reference::max_pool_backward(layer, x, dy);
      break;
    case LayerKind::average_pool:
      y = reference::average_pool(layer, x);
      dx = reference::average_pool_backward(layer, x, dy);
      break;
    default:
      y = reference::linear(layer, x, weights[0], bias);
      dx = reference::linear_backward(layer, x, weights[0], dy, gradients[0], gradients[1]);
  }
  return expected;
}

}  // namespace paceline::train
