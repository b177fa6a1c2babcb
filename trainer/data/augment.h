// SPDX-License-Identifier: Apache-2.0
// Makes the network's input from the bytes of an image.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/data/dataset.h"
#include "trainer/nn/image_cut.h"

namespace paceline::train {

// Draws a training image's cut: padded by an eighth of its size on every side (4 pixels at 32, as in He et al., arXiv
// 1512.03385, 4.2), cropped at random to its own size again, flipped with probability ½. Shifts go from −padding to
// +padding. The result is a function of the arguments alone.
ImageCut augmentation_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::int64_t image_size);

// Writes the normalised image as channel planes. The padding is the mean colour, which is 0 after normalisation.
void prepare_image(const Dataset& data, std::size_t sample, const Normalization& normalization,
                   const ImageCut& augmentation, std::span<float> out);

// The same after a linear interpolation of the image to another size; the shift is in pixels of that size.
void prepare_resized(const Dataset& data, std::size_t sample, const Normalization& normalization,
                     const ImageCut& augmentation, std::int64_t image_size, std::span<float> out);

}  // namespace paceline::train
