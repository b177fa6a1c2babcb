#include "trainer/data/memory_source.h"

#include <utility>

#include "trainer/data/augment.h"

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

}  // namespace paceline::train
