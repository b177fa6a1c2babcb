// SPDX-License-Identifier: Apache-2.0
// Opens a picture file and makes the network's input from it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/crop.h"
#include "trainer/data/dataset.h"
#include "trainer/data/picture.h"

namespace paceline::train {

// Recognises the kind by the first bytes, as torchvision's loader does, and reads the header. The bytes must outlive
// the picture. PNG and WebP files are decoded whole, here. Transparency is ignored, as in Pillow's convert("RGB").
std::unique_ptr<PictureReader> open_picture(std::span<const std::uint8_t> bytes);

// Writes the crop of a picture, whose header has been read, as image_size × image_size pixels in normalised channel
// planes. It decodes only the crop's columns and rows, at the smallest scale that has enough pixels, and interpolates
// linearly between neighbours. Throws PictureError.
void prepare_picture(PictureReader& picture, const Crop& crop, std::int64_t image_size,
                     const Normalization& normalization, std::span<float> out);

}  // namespace paceline::train
