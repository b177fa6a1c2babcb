// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer/backend/reference/reference_model.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/nn/init.h"

namespace paceline::train::reference {
namespace {
constexpr double running_momentum = 0.1;
const Values none;
}  // namespace

ReferenceModel::ReferenceModel(Network network, std::uint64_t seed, bool freeze_batch_norm)
    : network_(std::move(network)), frozen_(freeze_batch_norm) {
  for (const Layer& layer : network_.layers()) {
    for (const ParameterShape& shape : layer.parameters()) {
      const std::vector<float> initial = initial_values(layer, shape, seed);
      weights[shape.name] = Values(initial.begin(), initial.end());
      gradients[shape.name] = velocity[shape.name] = Values(initial.size(), 0.0);
    }
    if (layer.kind == LayerKind::batch_norm) {
      const auto channels = static_cast<std::size_t>(layer.out.channels);
      running[layer.name] = {Values(channels, 0.0), Values(channels, 1.0)};
    }
  }
}

void ReferenceModel::narrow(Values& values) const {
  if (!round) return;
  for (double& value : values) value = round(value);
}

Tensor ReferenceModel::before_relu(std::size_t i) const {
  const Layer& layer = network_.layers()[i];
  const Tensor& x = tensors[static_cast<std::size_t>(layer.input)];
  if (layer.kind == LayerKind::add_relu) return add(x, tensors[static_cast<std::size_t>(layer.residual)]);
  if (layer.kind == LayerKind::relu) return x;
  return batch_norm(x, used_.at(layer.name), weights.at(layer.name + ".weight"), weights.at(layer.name + ".bias"));
}

double ReferenceModel::forward(const Tensor& images, std::span<const std::int32_t> labels, Mode mode) {
  labels_.assign(labels.begin(), labels.end());
  tensors.assign(network_.layers().size(), Tensor());
  tensors[0] = images;
  narrow(tensors[0].values);
  for (auto& [name, filter] : weights) {
    if (running.empty() || !running.contains(name.substr(0, name.rfind('.')))) narrow(filter);
  }
  for (std::size_t i = 1; i < network_.layers().size(); ++i) {
    const Layer& layer = network_.layers()[i];
    const Tensor& x = tensors[static_cast<std::size_t>(layer.input)];
    Tensor& y = tensors[i];
    switch (layer.kind) {
      case LayerKind::convolution:
        y = convolution(layer, x, weights[layer.name + ".weight"], layer.bias ? weights[layer.name + ".bias"] : none);
        break;
      case LayerKind::batch_norm: {
        Moments& kept = running[layer.name];
        used_[layer.name] = mode == Mode::train && !frozen_ ? moments(x, sum_over_ranks) : kept;
        if (mode == Mode::train && !frozen_) {
          const auto count = static_cast<double>(x.samples * x.shape.height * x.shape.width);
          const Moments& batch = used_[layer.name];
          for (std::size_t c = 0; c < kept.mean.size(); ++c) {
            kept.mean[c] += running_momentum * (batch.mean[c] - kept.mean[c]);
            kept.variance[c] += running_momentum * (batch.variance[c] * count / (count - 1) - kept.variance[c]);
          }
        }
        y = layer.relu ? relu(before_relu(i)) : before_relu(i);
        break;
      }
      case LayerKind::relu:
      case LayerKind::add_relu:
        y = relu(before_relu(i));
        break;
      case LayerKind::max_pool:
        y = max_pool(layer, x);
        break;
      case LayerKind::average_pool:
        y = average_pool(layer, x);
        break;
      case LayerKind::linear:
        y = linear(layer, x, weights[layer.name + ".weight"], layer.bias ? weights[layer.name + ".bias"] : none);
        break;
      case LayerKind::dropout:
      case LayerKind::input:
        throw std::logic_error("the reference has no " + layer.name);
    }
    if (i + 1 < network_.layers().size()) narrow(y.values);  // logits and their gradient are fp32
  }
  return network_.layers_after() > 0 ? 0 : cross_entropy(tensors.back(), labels);
}

void ReferenceModel::backward(double scale) { backward_from(cross_entropy_backward(tensors.back(), labels_, scale)); }

void ReferenceModel::backward_from(const Tensor& gradient) {
  tensor_gradients.clear();
  for (const Tensor& tensor : tensors) tensor_gradients.emplace_back(tensor.samples, tensor.shape);
  tensor_gradients.back() = gradient;
  for (std::size_t i = network_.layers().size(); i-- > 1;) {
    const Layer& layer = network_.layers()[i];
    const auto input = static_cast<std::size_t>(layer.input);
    const Tensor& x = tensors[input];
    Tensor dy = tensor_gradients[i];
    if (layer.relu || layer.kind == LayerKind::relu || layer.kind == LayerKind::add_relu) {
      dy = relu_backward(tensors[i], dy);
    }
    Tensor dx;
    Values no_bias;
    Values& bias_gradient = gradients.contains(layer.name + ".bias") ? gradients[layer.name + ".bias"] : no_bias;
    switch (layer.kind) {
      case LayerKind::convolution:
        dx = convolution_backward(layer, x, weights[layer.name + ".weight"], dy, gradients[layer.name + ".weight"],
                                  bias_gradient);
        break;
      case LayerKind::batch_norm:
        dx = batch_norm_backward(x, used_[layer.name], frozen_, weights[layer.name + ".weight"], dy,
                                 gradients[layer.name + ".weight"], bias_gradient, sum_over_ranks);
        break;
      case LayerKind::linear:
        dx = linear_backward(layer, x, weights[layer.name + ".weight"], dy, gradients[layer.name + ".weight"],
                             bias_gradient);
        break;
      case LayerKind::max_pool:
        dx = max_pool_backward(layer, x, dy);
        break;
      case LayerKind::average_pool:
        dx = average_pool_backward(layer, x, dy);
        break;
      case LayerKind::add_relu: {
        Tensor& other = tensor_gradients[static_cast<std::size_t>(layer.residual)];
        other = add(other, dy);
        dx = dy;
        break;
      }
      default:
        dx = dy;
    }
    tensor_gradients[input] = add(tensor_gradients[input], dx);
    narrow(tensor_gradients[input].values);
  }
}

void ReferenceModel::step(double rate, double momentum, double decay) {
  for (auto& [name, w] : weights) {
    Values& v = velocity[name];
    for (std::size_t i = 0; i < w.size(); ++i) {
      v[i] = momentum * v[i] + gradients[name][i] + decay * w[i];
      w[i] -= rate * v[i];
    }
  }
}

double ReferenceModel::distance_to_kink() const {
  double distance = INFINITY;
  for (std::size_t i = 1; i < network_.layers().size(); ++i) {
    const Layer& layer = network_.layers()[i];
    if (layer.relu || layer.kind == LayerKind::relu || layer.kind == LayerKind::add_relu) {
      for (const double value : before_relu(i).values) distance = std::min(distance, std::abs(value));
    }
    if (layer.kind == LayerKind::max_pool) {
      const Tensor& x = tensors[static_cast<std::size_t>(layer.input)];
      const Tensor& y = tensors[i];
      for (std::int64_t n = 0; n < y.samples; ++n)
        for (std::int64_t c = 0; c < y.shape.channels; ++c)
          for (std::int64_t r = 0; r < y.shape.height; ++r)
            for (std::int64_t p = 0; p < y.shape.width; ++p) {
              Values window;
              for (std::int64_t k = 0; k < layer.kernel * layer.kernel; ++k) {
                const std::int64_t iy = r * layer.stride + k / layer.kernel - layer.padding;
                const std::int64_t ix = p * layer.stride + k % layer.kernel - layer.padding;
                if (iy >= 0 && iy < x.shape.height && ix >= 0 && ix < x.shape.width) {
                  window.push_back(x.at(n, c, iy, ix));
                }
              }
              if (window.size() < 2) continue;
              std::sort(window.rbegin(), window.rend());
              const bool all_off = window[0] == 0 && window[1] == 0;  // behind a ReLU: the gradient is zero
              if (!all_off) distance = std::min(distance, window[0] - window[1]);
            }
    }
  }
  return distance;
}

}  // namespace paceline::train::reference
