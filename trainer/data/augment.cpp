// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/augment.h"

#include <algorithm>
#include <vector>

#include "trainer/core/random.h"
#include "trainer/data/resample.h"

namespace paceline::train {

ImageCut augmentation_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::int64_t image_size) {
  const std::int64_t padding = image_size / 8;
  Random random{augmenting, seed, epoch, sample};
  const auto shift = [&] {
    return static_cast<std::int32_t>(
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * padding + 1))) - padding);
  };
  ImageCut result;
  result.shift_x = shift();
  result.shift_y = shift();
  result.flip = random.below(2) == 1 ? 1 : 0;
  return result;
}

void prepare_image(const Dataset& data, std::size_t sample, const Normalization& normalization,
                   const ImageCut& augmentation, std::span<float> out) {
  const std::span<const std::uint8_t> image = data.image(sample);
  const std::int64_t size = data.image_size;
  float* to = out.data();
  for (std::int64_t channel = 0; channel < data.channels; ++channel) {
    const float mean = normalization.mean[static_cast<std::size_t>(channel)];
    const float scale = normalization.scale[static_cast<std::size_t>(channel)];
    for (std::int64_t y = 0; y < size; ++y) {
      const std::int64_t from_y = y + augmentation.shift_y;
      const bool row_inside = from_y >= 0 && from_y < size;
      const std::uint8_t* row = image.data() + (channel * size + (row_inside ? from_y : 0)) * size;
      for (std::int64_t x = 0; x < size; ++x) {
        const std::int64_t from_x = (augmentation.flip ? size - 1 - x : x) + augmentation.shift_x;
        const bool inside = row_inside && from_x >= 0 && from_x < size;
        *to++ = inside ? (static_cast<float>(row[from_x]) - mean) * scale : 0.0f;
      }
    }
  }
}

void prepare_resized(const Dataset& data, std::size_t sample, const Normalization& normalization,
                     const ImageCut& augmentation, std::int64_t image_size, std::span<float> out) {
  const std::span<const std::uint8_t> image = data.image(sample);
  const std::int64_t size = data.image_size;
  const std::vector<Tap> taps = linear_taps(0, static_cast<double>(size), image_size, size);
  const auto tap = [&](std::int64_t at) -> const Tap* {
    return at >= 0 && at < image_size ? &taps[static_cast<std::size_t>(at)] : nullptr;
  };
  std::vector<float> blended(static_cast<std::size_t>(size));  // two rows of the image
  float* to = out.data();
  for (std::int64_t channel = 0; channel < data.channels; ++channel) {
    const float mean = normalization.mean[static_cast<std::size_t>(channel)];
    const float scale = normalization.scale[static_cast<std::size_t>(channel)];
    const std::uint8_t* plane = image.data() + channel * size * size;
    for (std::int64_t y = 0; y < image_size; ++y) {
      const Tap* row = tap(y + augmentation.shift_y);
      if (row == nullptr) {
        to = std::fill_n(to, image_size, 0.0f);
        continue;
      }
      for (std::int64_t x = 0; x < size; ++x) {
        const float a = plane[row->first * size + x], b = plane[row->second * size + x];
        blended[static_cast<std::size_t>(x)] = a + row->weight * (b - a);
      }
      for (std::int64_t x = 0; x < image_size; ++x) {
        const Tap* at = tap((augmentation.flip ? image_size - 1 - x : x) + augmentation.shift_x);
        if (at == nullptr) {
          *to++ = 0;
          continue;
        }
        const float a = blended[static_cast<std::size_t>(at->first)], b = blended[static_cast<std::size_t>(at->second)];
        *to++ = (a + at->weight * (b - a) - mean) * scale;
      }
    }
  }
}

}  // namespace paceline::train
