// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/layout.h"

#include <algorithm>

namespace paceline::train::cuda {
namespace {

// Calls visit(position as published, position as stored) for every published value.
template <class Visit>
void each_value(const FilterLayout& l, Visit visit) {
  std::size_t published = 0;
  for (std::int64_t o = 0; o < l.out; ++o) {
    for (std::int64_t i = 0; i < l.in; ++i) {
      for (std::int64_t y = 0; y < l.height; ++y) {
        for (std::int64_t x = 0; x < l.width; ++x) {
          visit(published++, static_cast<std::size_t>(((o * l.height + y) * l.width + x) * l.stored_in + i));
        }
      }
    }
  }
}

}  // namespace

FilterLayout filter_layout(const Layer& layer, std::size_t index) {
  if (index > 0 || layer.kind == LayerKind::batch_norm) return {layer.out.channels};
  const std::int64_t in = layer.in.channels;
  if (layer.kind == LayerKind::linear) return {layer.out.channels, in, layer.in.height, layer.in.width, in};
  return {layer.out.channels, in, layer.kernel, layer.kernel, to_multiple(in, channel_group)};
}

std::vector<float> to_published(const FilterLayout& layout, std::span<const float> stored) {
  std::vector<float> result(layout.published());
  each_value(layout, [&](std::size_t p, std::size_t s) { result[p] = stored[s]; });
  return result;
}

void from_published(const FilterLayout& layout, std::span<const float> published, std::span<float> stored) {
  std::fill_n(stored.begin(), layout.stored(), 0.0f);
  each_value(layout, [&](std::size_t p, std::size_t s) { stored[s] = published[p]; });
}

}  // namespace paceline::train::cuda
