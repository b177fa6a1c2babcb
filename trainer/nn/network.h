// SPDX-License-Identifier: Apache-2.0
// A network as a list of layers in the order of computation. It describes the computation, and every backend and the
// float64 reference of the tests carry it out. Each published model is a function that builds such a list (models.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace paceline::train {

enum class LayerKind { input, convolution, batch_norm, relu, add_relu, max_pool, average_pool, linear, dropout };

// Of one image.
struct Shape {
  std::int64_t channels = 0, height = 1, width = 1;
  std::int64_t size() const { return channels * height * width; }
  bool operator==(const Shape&) const = default;
};

struct ParameterShape {
  std::string name;
  std::vector<std::int64_t> shape;  // weights are OIHW for convolutions, out × in for linear layers
};

// Layer i writes tensor i. Layer 0 is the input image, and the last layer's tensor holds the logits.
struct Layer {
  LayerKind kind = LayerKind::input;
  std::string name;  // torchvision's
  int input = -1;
  int residual = -1;  // add_relu: the second summand
  Shape in, out;
  std::int64_t kernel = 1, stride = 1, padding = 0;  // convolution and pooling, equal in both directions
  bool bias = false;                                 // convolution and linear
  bool relu = false;                                 // batch_norm: followed by a ReLU
  bool zero_scale = false;                           // batch_norm: its scale starts at 0, not at 1
  float drop = 0;                                    // dropout: probability of a zero

  std::vector<ParameterShape> parameters() const;
  double multiply_adds() const;  // of one image's forward pass; convolutions and linear layers only
};

class Network {
 public:
  explicit Network(Shape image);

  // Each appends a layer and returns its index.
  int convolution(std::string name, int input, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                  bool bias);  // padded by kernel / 2
  int batch_norm(std::string name, int input, bool relu, bool zero_scale = false);
  int relu(std::string name, int input);
  int add_relu(std::string name, int input, int residual);
  int max_pool(std::string name, int input, std::int64_t kernel, std::int64_t stride, std::int64_t padding);
  int average_pool(std::string name, int input, std::int64_t kernel);  // of stride kernel
  int linear(std::string name, int input, std::int64_t outputs, bool bias = true);
  int dropout(std::string name, int input, float drop);

  const std::vector<Layer>& layers() const { return layers_; }
  const Shape& out(int layer) const { return layers_[static_cast<std::size_t>(layer)].out; }

  // The layers before which the network can be cut in two, in ascending order: no layer from there on reads anything
  // but the result of the layer before the cut, so a residual block stays whole. A convolution or linear layer keeps
  // the batch norm and the ReLU that follow it.
  std::vector<int> cuts() const;

  // Layers first … last − 1 of a whole network, between two of its cuts (or an end), as a network of their own. Its
  // image is the result of layer first − 1.
  Network part(int first, int last) const;

  // Layers of the whole network before and after this part of it; 0 for a whole network. The layer that both parts
  // share, an image to the second, does not count.
  int layers_before() const { return before_; }
  int layers_after() const { return after_; }

  // Whether backward computes the gradient of the layer's input: not if that is the image.
  bool has_data_gradient(const Layer& layer) const { return layer.input != 0 || before_ > 0; }

  std::int64_t parameter_count() const;
  double forward_flops() const;  // of one image; 2 × multiply-adds
  double train_flops() const;    // forward and both gradients; the image has no gradient

 private:
  int append(Layer layer);
  std::vector<Layer> layers_;
  int before_ = 0, after_ = 0;
};

}  // namespace paceline::train
