// SPDX-License-Identifier: Apache-2.0
// The reference for the fast backends: every layer by its definition, in float64 and plain loops. The layer argument
// has the shapes, kernel, stride and padding. Weights are in the published layout. Gradients of parameters are
// overwritten.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tests/unit/trainer/backend/reference/tensor.h"

namespace paceline::train::reference {

using Values = std::vector<double>;

Tensor convolution(const Layer& layer, const Tensor& x, const Values& weight,
                   const Values& bias);  // bias: may be empty
Tensor convolution_backward(const Layer& layer, const Tensor& x, const Values& weight, const Tensor& dy,
                            Values& weight_gradient, Values& bias_gradient);

struct Moments {
  Values mean, variance;  // by channel; biased
};
// Replaces sums over this rank's samples by sums over those of all ranks.
using SumOverRanks = std::function<void(std::span<double>)>;
Moments moments(const Tensor& x, const SumOverRanks& sum = {});

inline constexpr double epsilon = 1e-5;

Tensor batch_norm(const Tensor& x, const Moments& moments, const Values& scale, const Values& shift);
// frozen: the moments are constants; otherwise they are those of x, on all ranks, and the gradient goes through them.
// Gradients of scale and shift are those of this rank.
Tensor batch_norm_backward(const Tensor& x, const Moments& moments, bool frozen, const Values& scale, const Tensor& dy,
                           Values& scale_gradient, Values& shift_gradient, const SumOverRanks& sum = {});

Tensor relu(const Tensor& x);
Tensor relu_backward(const Tensor& y, const Tensor& dy);  // y: the ReLU's result
Tensor add(const Tensor& a, const Tensor& b);

Tensor max_pool(const Layer& layer, const Tensor& x);
Tensor max_pool_backward(const Layer& layer, const Tensor& x, const Tensor& dy);  // to the first of equal maxima

Tensor average_pool(const Layer& layer, const Tensor& x);
Tensor average_pool_backward(const Layer& layer, const Tensor& x, const Tensor& dy);

Tensor linear(const Layer& layer, const Tensor& x, const Values& weight, const Values& bias);  // bias: may be empty
Tensor linear_backward(const Layer& layer, const Tensor& x, const Values& weight, const Tensor& dy,
                       Values& weight_gradient, Values& bias_gradient);

double cross_entropy(const Tensor& logits, std::span<const std::int32_t> labels);  // summed over the samples
Tensor cross_entropy_backward(const Tensor& logits, std::span<const std::int32_t> labels, double scale);

}  // namespace paceline::train::reference
