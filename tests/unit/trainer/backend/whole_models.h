// SPDX-License-Identifier: Apache-2.0
// Checks of whole models for the tests of every backend.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train {

// A dropout of a quarter behind a convolution that copies its input.
inline Network dropout_network() {
  Network net({4, 64, 64});
  net.linear("fc", net.dropout("drop", net.convolution("conv", 0, 4, 1, 1, false), 0.25f), 4, false);
  return net;
}

// Four images of ones, of class 0. With weights of 0 each class has the probability ¼, and the gradient of class k's
// weight is Σ over images of mask × (¼ − [k = 0]), where a mask is 0 or 4/3: a third of how many images kept the value.
inline void expect_dropout_by_seed(Model& model) {
  constexpr std::size_t values = 4 * 64 * 64, batch = 4;
  const Parameter &convolution = model.parameters()[0], &linear = model.parameters()[1];
  std::vector<float> identity(16, 0.0f), weights(4 * values, 0.0f);
  for (std::size_t c = 0; c < 4; ++c) identity[5 * c] = 1;
  model.from_plain(convolution, identity, model.weights());
  model.from_plain(linear, weights, model.weights());
  const std::vector<float> ones(batch * values, 1.0f);
  const std::vector<std::int32_t> labels(batch, 0);
  const auto gradient = [&](std::uint64_t seed) {
    model.seed_dropout(seed);
    model.forward(ones, labels, Mode::train);
    model.backward(1);
    return model.to_plain(linear, model.gradients());
  };
  const std::vector<float> once = gradient(1), again = gradient(1), other = gradient(2);
  EXPECT_EQ(once, again);
  EXPECT_NE(once, other);
  double kept_of_all = 0;
  std::vector<std::size_t> places(batch + 1, 0);  // indexed by the number of images that kept the value
  for (std::size_t i = 0; i < values; ++i) {
    const double kept = 3 * once[values + i];
    ASSERT_NEAR(kept, std::round(kept), 1e-4) << i;
    ASSERT_NEAR(once[i], -kept, 1e-4) << i;
    ASSERT_LE(kept, batch + 0.5);
    kept_of_all += kept;
    ++places[static_cast<std::size_t>(std::round(kept))];
  }
  // Within four standard deviations of the binomial distribution, so the masks of the images are independent.
  for (std::size_t k = 0; k <= batch; ++k) {
    constexpr double choose[]{1, 4, 6, 4, 1};
    const double p =
        choose[k] * std::pow(0.75, static_cast<double>(k)) * std::pow(0.25, static_cast<double>(batch - k));
    EXPECT_NEAR(static_cast<double>(places[k]) / values, p, 4 * std::sqrt(p * (1 - p) / values)) << k;
  }
  EXPECT_NEAR(kept_of_all / (batch * values), 0.75, 4 * std::sqrt(0.75 * 0.25 / (batch * values)));
  // Evaluation drops nothing: class 0's logit is the mean of the ones.
  std::fill_n(weights.begin(), values, 1.0f / values);
  model.from_plain(linear, weights, model.weights());
  EXPECT_NEAR(model.forward(ones, labels, Mode::evaluate).loss_sum, batch * (std::log(std::exp(1) + 3) - 1), 1e-4);
  const double dropped = model.forward(ones, labels, Mode::train).loss_sum;
  EXPECT_GT(std::abs(dropped - batch * (std::log(std::exp(1) + 3) - 1)), 1e-4) << "training dropped nothing";
}

// Layers without a kink, so that a narrow type changes results only by rounding. A ReLU or a maximum on the other side
// of its kink changes gradients by far more; operations.h tests those layers alone, with bounds of their own.
inline Network smooth_network() {
  Network net({3, 16, 16});
  int x = net.batch_norm("bn1", net.convolution("conv1", 0, 16, 3, 1, false), false);
  x = net.batch_norm("bn2", net.convolution("conv2", x, 32, 3, 2, false), false);
  x = net.batch_norm("bn3", net.convolution("conv3", x, 32, 1, 1, false), false);
  x = net.convolution("conv4", x, 32, 3, 1, true);
  x = net.linear("d", net.average_pool("avgpool", x, 2), 24);
  net.linear("fc", x, 10);
  return net;
}

// The bound on ‖narrow − exact‖₂ ÷ ‖exact‖₂ of each parameter's gradient in that network, by the number of bits.
// SmoothNetwork's test measures the effect of rounding every tensor in float64.
inline double smooth_bound(int mantissa_bits) { return 8 * std::ldexp(1.0, -mantissa_bits); }

}  // namespace paceline::train
