// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/resample.h"

#include <algorithm>
#include <cmath>

#include "trainer/core/vectorize.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void nearest_bytes(const float* pixels, std::size_t count, std::uint8_t* bytes) {
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(static_cast<int>(pixels[i] + 0.5f));
}

}  // namespace

void round_to_bytes(std::span<const float> pixels, std::span<std::uint8_t> bytes) {
  nearest_bytes(pixels.data(), pixels.size(), bytes.data());
}

std::vector<Tap> linear_taps(double begin, double length, std::int64_t count, std::int64_t pixels) {
  const auto end = static_cast<double>(pixels - 1);
  const double low = std::clamp(begin, 0.0, end), high = std::clamp(begin + length - 1, low, end);
  std::vector<Tap> taps(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double step = length / static_cast<double>(count);
    const double at = std::clamp(begin + (static_cast<double>(i) + 0.5) * step - 0.5, low, high);
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = static_cast<std::int64_t>(std::floor(at));
    tap.weight = static_cast<float>(at - std::floor(at));
    tap.second = tap.first + (tap.weight > 0 ? 1 : 0);
  }
  return taps;
}

}  // namespace paceline::train
