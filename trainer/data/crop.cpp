// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/crop.h"

#include <algorithm>
#include <cmath>

#include "trainer/core/random.h"

namespace paceline::train {
namespace {

constexpr double narrowest = 3.0 / 4, widest = 4.0 / 3;

// The largest centred crop whose ratio is within the bounds.
Crop largest_crop(double width, double height) {
  Crop crop{0, 0, width, height};
  if (width / height < narrowest) crop.height = std::round(width / narrowest);
  if (width / height > widest) crop.width = std::round(height * widest);
  crop.x = std::floor((width - crop.width) / 2);
  crop.y = std::floor((height - crop.height) / 2);
  return crop;
}

}  // namespace

Crop random_resized_crop(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::int64_t width,
                         std::int64_t height) {
  Random random{augmenting, seed, epoch, sample};
  const bool flip = random.below(2) == 1;
  const double area = static_cast<double>(width) * static_cast<double>(height);
  Crop crop = largest_crop(static_cast<double>(width), static_cast<double>(height));
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * random.uniform(0.08, 1);
    const double ratio = std::exp(random.uniform(std::log(narrowest), std::log(widest)));
    const auto w = static_cast<std::int64_t>(std::llround(std::sqrt(part * ratio)));
    const auto h = static_cast<std::int64_t>(std::llround(std::sqrt(part / ratio)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const std::uint64_t x = random.below(static_cast<std::uint64_t>(width - w + 1));
    const std::uint64_t y = random.below(static_cast<std::uint64_t>(height - h + 1));
    crop = {static_cast<double>(x), static_cast<double>(y), static_cast<double>(w), static_cast<double>(h)};
    break;
  }
  crop.flip = flip;
  return crop;
}

Crop centre_crop(std::int64_t width, std::int64_t height) {
  const auto w = static_cast<double>(width), h = static_cast<double>(height);
  const double side = std::min(w, h) * 224 / 256;
  return {(w - side) / 2, (h - side) / 2, side, side};
}

int eighths_for(const Crop& crop, std::int64_t image_size) {
  const double side = std::min(crop.width, crop.height);
  int eighths = 1;
  while (eighths < 8 && side * eighths / 8 < static_cast<double>(image_size)) ++eighths;
  return eighths;
}

}  // namespace paceline::train
