// SPDX-License-Identifier: Apache-2.0
// The layout of tensors in GPU memory: images as NHWC and filters as KRSC, which tensor cores read without a
// transposition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/nn/network.h"

namespace paceline::train::cuda {

// Kernels read four neighbouring channels at a time. The image's channels are filled up with zeros; all other layers
// have a multiple of four.
constexpr std::int64_t channel_group = 4;
constexpr std::int64_t to_multiple(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// cuDNN takes dimensions in the order N, C, H, W for any memory layout, which the strides, in elements, describe.
using Dims = std::array<std::int64_t, 4>;
constexpr Dims channels_last_strides(const Dims& nchw) {
  return {nchw[1] * nchw[2] * nchw[3], 1, nchw[1] * nchw[3], nchw[1]};
}

// A parameter. Filters: out × in × height × width as published; a linear layer that reads images has one of the
// image's size; vectors have only `out`. Stored with `stored_in` ≥ `in` channels, the rest zero.
struct FilterLayout {
  std::int64_t out = 1, in = 1, height = 1, width = 1, stored_in = 1;
  std::size_t published() const { return static_cast<std::size_t>(out * in * height * width); }
  std::size_t stored() const { return static_cast<std::size_t>(out * height * width * stored_in); }
};

// Of the layer's parameter number `index`, as Layer::parameters() lists them.
FilterLayout filter_layout(const Layer& layer, std::size_t index);

// The stored values in the published order, and back. The spans have published() and stored() elements.
std::vector<float> to_published(const FilterLayout& layout, std::span<const float> stored);
void from_published(const FilterLayout& layout, std::span<const float> published, std::span<float> stored);

}  // namespace paceline::train::cuda
