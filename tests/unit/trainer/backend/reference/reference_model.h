// SPDX-License-Identifier: Apache-2.0
// A network in float64: the layers of layers.h in order. It keeps every tensor for tests to read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/trainer/backend/reference/layers.h"
#include "trainer/nn/model.h"

namespace paceline::train::reference {

class ReferenceModel {
 public:
  // Has the initial weights of every backend.
  ReferenceModel(Network network, std::uint64_t seed, bool freeze_batch_norm);

  // Returns the summed loss; 0 for a part of a network that other layers follow.
  double forward(const Tensor& images, std::span<const std::int32_t> labels, Mode mode);
  void backward(double scale);                 // gradients of loss × scale; after forward in Mode::train
  void backward_from(const Tensor& gradient);  // likewise, given the gradient of the last tensor

  // g ← gradient + decay × w, v ← momentum × v + g, w ← w − rate × v.
  void step(double rate, double momentum, double decay);

  std::map<std::string, Values> weights, gradients, velocity;  // by parameter
  std::map<std::string, Moments> running;                      // by layer
  SumOverRanks sum_over_ranks;                                 // batch norms of all ranks; empty: of this one
  std::function<double(double)> round;                         // of all tensors and filters; empty: none
  std::vector<Tensor> tensors, tensor_gradients;               // by layer; 0 is the image

  // The distance of the last forward to a point without a derivative: the least |input of a ReLU|, and the least
  // difference between a maximum and the next value in its window.
  double distance_to_kink() const;

  const Network& network() const { return network_; }

 private:
  void narrow(Values& values) const;
  Tensor before_relu(std::size_t layer) const;  // of a layer that ends in a ReLU

  Network network_;
  bool frozen_;
  std::vector<std::int32_t> labels_;
  std::map<std::string, Moments> used_;  // the moments that each batch norm used
};

}  // namespace paceline::train::reference
