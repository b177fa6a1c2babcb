// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/memory_source.h"

#include <algorithm>
#include <vector>

#include "trainer/data/resample.h"

namespace paceline::train {

ImageCut MemorySource::cut_of(std::size_t sample, const std::optional<Draw>& draw) const {
  if (!draw) return {};
  ImageCut result = augmentation_of(draw->seed, draw->epoch, sample, image_size_);
  if (!draw->crop) result.shift_x = result.shift_y = 0;
  if (!draw->mirror) result.flip = 0;
  return result;
}

void MemorySource::prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const {
  const ImageCut cut = cut_of(sample, draw);
  if (image_size_ == data_.image_size) {
    prepare_image(data_, sample, normalization_, cut, out);
  } else {
    prepare_resized(data_, sample, normalization_, cut, image_size_, out);
  }
}

ImageCut MemorySource::prepare_stored(std::size_t sample, const std::optional<Draw>& draw,
                                      std::span<std::uint8_t> out) const {
  if (image_size_ == data_.image_size) {
    std::ranges::copy(data_.image(sample), out.begin());
  } else {
    thread_local std::vector<float> pixels;
    pixels.resize(values());
    prepare_resized(data_, sample, {{}, {1, 1, 1}}, {}, image_size_, pixels);
    round_to_bytes(pixels, out);
  }
  return cut_of(sample, draw);
}

}  // namespace paceline::train
