// From a JPEG file's bytes to the network's input.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "trainer/data/crop.h"
#include "trainer/data/dataset.h"
#include "trainer/data/jpeg.h"

namespace paceline::train {

// Writes the crop of a picture whose header is read as image_size × image_size pixels, normalised, channel planes one
// after the other. The picture is decoded at the smallest scale that has enough pixels for it, and there only the
// crop's columns and rows; from there it is interpolated linearly between neighbours. Throws JpegError.
void prepare_jpeg(JpegReader& jpeg, const Crop& crop, std::int64_t image_size, const Normalization& normalization,
                  std::span<float> out);

}  // namespace paceline::train
