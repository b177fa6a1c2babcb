#include "trainer/data/memory_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "trainer/data/augment.h"
#include "trainer/data/resample.h"

namespace paceline::train {

void MemorySource::prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const {
  const Augmentation augmentation =
      draw ? augmentation_of(draw->seed, draw->epoch, sample, image_size_) : Augmentation{};
  if (image_size_ == data_.image_size) {
    prepare_image(data_, sample, normalization_, augmentation, out);
  } else {
    prepare_resized(data_, sample, normalization_, augmentation, image_size_, out);
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
  const Augmentation cut = draw ? augmentation_of(draw->seed, draw->epoch, sample, image_size_) : Augmentation{};
  return {static_cast<std::int16_t>(cut.shift_x), static_cast<std::int16_t>(cut.shift_y), cut.flip ? 1 : 0};
}

}  // namespace paceline::train
