// SPDX-License-Identifier: Apache-2.0
#include "trainer/nn/network.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/core/error.h"

namespace paceline::train {

std::vector<ParameterShape> Layer::parameters() const {
  std::vector<ParameterShape> result;
  switch (kind) {
    case LayerKind::convolution:
      result.push_back({name + ".weight", {out.channels, in.channels, kernel, kernel}});
      if (bias) result.push_back({name + ".bias", {out.channels}});
      break;
    case LayerKind::batch_norm:
      result.push_back({name + ".weight", {out.channels}});
      result.push_back({name + ".bias", {out.channels}});
      break;
    case LayerKind::linear:
      result.push_back({name + ".weight", {out.channels, in.size()}});
      if (bias) result.push_back({name + ".bias", {out.channels}});
      break;
    default:
      break;
  }
  return result;
}

double Layer::multiply_adds() const {
  switch (kind) {
    case LayerKind::convolution:
      return static_cast<double>(out.size() * in.channels * kernel * kernel);
    case LayerKind::linear:
      return static_cast<double>(in.size() * out.size());
    default:
      return 0;
  }
}

Network::Network(Shape image) {
  Layer input;
  input.name = "input";
  input.in = input.out = image;
  layers_.push_back(std::move(input));
}

int Network::append(Layer layer) {
  if (layer.out.channels < 1 || layer.out.height < 1 || layer.out.width < 1) {
    throw Error("images of " + std::to_string(layers_[0].out.height) + " × " + std::to_string(layers_[0].out.width) +
                    " pixels are too small",
                "nothing is left after " + layer.name, "give a larger ‹image-size›", Status::usage);
  }
  layers_.push_back(std::move(layer));
  return static_cast<int>(layers_.size()) - 1;
}

namespace {
Layer make(LayerKind kind, std::string name, int input, Shape in, Shape out) {
  Layer layer;
  layer.kind = kind;
  layer.name = std::move(name);
  layer.input = input;
  layer.in = in;
  layer.out = out;
  return layer;
}

// Floor division that sends negative numerators below zero, so that append() sees them.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const std::int64_t room = size + 2 * padding - kernel;
  return room < 0 ? 0 : room / stride + 1;
}

Layer windowed(LayerKind kind, std::string name, int input, Shape in, std::int64_t channels, std::int64_t kernel,
               std::int64_t stride, std::int64_t padding) {
  const Shape out{channels, windows(in.height, kernel, stride, padding), windows(in.width, kernel, stride, padding)};
  Layer layer = make(kind, std::move(name), input, in, out);
  layer.kernel = kernel;
  layer.stride = stride;
  layer.padding = padding;
  return layer;
}
}  // namespace

int Network::convolution(std::string name, int input, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                         bool bias) {
  Layer layer =
      windowed(LayerKind::convolution, std::move(name), input, out(input), channels, kernel, stride, kernel / 2);
  layer.bias = bias;
  return append(std::move(layer));
}

int Network::batch_norm(std::string name, int input, bool relu, bool zero_scale) {
  Layer layer = make(LayerKind::batch_norm, std::move(name), input, out(input), out(input));
  layer.relu = relu;
  layer.zero_scale = zero_scale;
  return append(std::move(layer));
}

int Network::relu(std::string name, int input) {
  return append(make(LayerKind::relu, std::move(name), input, out(input), out(input)));
}

int Network::add_relu(std::string name, int input, int residual) {
  if (out(input) != out(residual)) throw std::logic_error(name + " adds tensors of different shapes");
  Layer layer = make(LayerKind::add_relu, std::move(name), input, out(input), out(input));
  layer.residual = residual;
  return append(std::move(layer));
}

int Network::max_pool(std::string name, int input, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const Shape in = out(input);
  return append(windowed(LayerKind::max_pool, std::move(name), input, in, in.channels, kernel, stride, padding));
}

int Network::average_pool(std::string name, int input, std::int64_t kernel) {
  const Shape in = out(input);
  return append(windowed(LayerKind::average_pool, std::move(name), input, in, in.channels, kernel, kernel, 0));
}

int Network::linear(std::string name, int input, std::int64_t outputs, bool bias) {
  Layer layer = make(LayerKind::linear, std::move(name), input, out(input), Shape{outputs, 1, 1});
  layer.bias = bias;
  return append(std::move(layer));
}

int Network::dropout(std::string name, int input, float drop) {
  Layer layer = make(LayerKind::dropout, std::move(name), input, out(input), out(input));
  layer.drop = drop;
  return append(std::move(layer));
}

std::vector<int> Network::cuts() const {
  std::vector<int> found;
  int reaches = static_cast<int>(layers_.size());  // the earliest tensor that the layers from `at` on read
  for (int at = static_cast<int>(layers_.size()) - 1; at > 1; --at) {
    const Layer& layer = layers_[static_cast<std::size_t>(at)];
    reaches = std::min(reaches, layer.input);
    if (layer.residual >= 0) reaches = std::min(reaches, layer.residual);
    const bool follows =
        layer.kind == LayerKind::batch_norm || layer.kind == LayerKind::relu || layer.kind == LayerKind::add_relu;
    if (!follows && reaches == at - 1) found.push_back(at);
  }
  std::ranges::reverse(found);
  return found;
}

Network Network::part(int first, int last) const {
  Network part(out(first - 1));
  part.before_ = first - 1;
  part.after_ = static_cast<int>(layers_.size()) - last;
  for (int i = first; i < last; ++i) {
    Layer layer = layers_[static_cast<std::size_t>(i)];
    layer.input -= part.before_;
    if (layer.residual >= 0) layer.residual -= part.before_;
    if (layer.input < 0) throw std::logic_error("the network cannot be cut before " + layer.name);
    part.layers_.push_back(std::move(layer));
  }
  return part;
}

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (const Layer& layer : layers_) {
    for (const ParameterShape& parameter : layer.parameters()) {
      std::int64_t size = 1;
      for (const std::int64_t extent : parameter.shape) size *= extent;
      count += size;
    }
  }
  return count;
}

double Network::forward_flops() const {
  double total = 0;
  for (const Layer& layer : layers_) total += 2 * layer.multiply_adds();
  return total;
}

double Network::train_flops() const {
  double total = 0;
  for (const Layer& layer : layers_) total += (has_data_gradient(layer) ? 3 : 2) * 2 * layer.multiply_adds();
  return total;
}

}  // namespace paceline::train
