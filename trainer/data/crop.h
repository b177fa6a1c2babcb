// SPDX-License-Identifier: Apache-2.0
// The part of a picture that a network sees. Pictures may have any size.
#pragma once

#include <cstdint>

namespace paceline::train {

// A rectangle, in pixels of the picture: pixel i is the unit from i to i + 1.
struct Crop {
  double x = 0, y = 0, width = 0, height = 0;
  bool flip = false;  // mirrored left to right
};

// A training image's crop: 8 to 100 % of the area at a ratio of 3:4 to 4:3, where area and logarithm of the ratio are
// uniform, anywhere in the picture, in whole pixels; flipped with probability ½ (Szegedy et al., arXiv 1409.4842, 6;
// Goyal et al., 1706.02677, 5.1). After ten crops that do not fit, it is the largest centred one of an allowed ratio,
// as in torchvision's RandomResizedCrop. The result is a function of the arguments alone.
Crop random_resized_crop(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::int64_t width,
                         std::int64_t height);

// A test image's crop: the picture is resized so that its shorter side is 256/224 of image_size, and the middle is
// taken (He et al., 1512.03385, 3.4). For any image_size that is a square of 7/8 of the shorter side.
Crop centre_crop(std::int64_t width, std::int64_t height);

// The smallest M of 1 … 8 for which the crop of a picture decoded at scale M/8 has at least `image_size` pixels on both
// sides; 8 if there is none.
int eighths_for(const Crop& crop, std::int64_t image_size);

}  // namespace paceline::train
