// Makes the network's input from the bytes of a picture file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trainer/data/crop.h"
#include "trainer/data/dataset.h"
#include "trainer/data/picture.h"

namespace paceline::train {

// Writes the crop of a picture, whose header has been read, as image_size × image_size pixels in normalised channel
// planes. It decodes only the crop's columns and rows, at the smallest scale that has enough pixels, and interpolates
// linearly between neighbours. Throws PictureError.
void prepare_picture(PictureReader& picture, const Crop& crop, std::int64_t image_size,
                     const Normalization& normalization, std::span<float> out);

}  // namespace paceline::train
