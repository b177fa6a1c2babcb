// From bytes to the network's input.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/dataset.h"

namespace paceline::train {

// Where an image is cut and whether it is mirrored: padded by an eighth of its size on every side (4 pixels at 32, as
// in He et al., arXiv 1512.03385, 4.2), cropped at random to its own size again, flipped with probability ½.
struct Augmentation {
  std::int64_t shift_x = 0, shift_y = 0;  // −padding … +padding
  bool flip = false;
};

// A function of its arguments alone.
Augmentation augmentation_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::int64_t image_size);

// Writes the image, normalised, channel planes kept. The padding is the mean colour, which is 0 after normalisation.
void prepare_image(const Dataset& data, std::size_t sample, const Normalization& normalization,
                   const Augmentation& augmentation, std::span<float> out);

// The same of the image at another size, to which it is interpolated linearly first; the shift is in pixels of that.
void prepare_resized(const Dataset& data, std::size_t sample, const Normalization& normalization,
                     const Augmentation& augmentation, std::int64_t image_size, std::span<float> out);

}  // namespace paceline::train
