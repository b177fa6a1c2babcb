// Which part of a picture of any size a network sees.
#pragma once

#include <cstdint>

namespace paceline::train {

// A rectangle, in pixels of the picture: pixel i is the unit from i to i + 1.
struct Crop {
  double x = 0, y = 0, width = 0, height = 0;
  bool flip = false;  // mirrored left to right
};

// Training's: 8 to 100 % of the area at a ratio of 3:4 to 4:3, both uniform (the ratio's logarithm), anywhere in the
// picture, in whole pixels; flipped with probability ½ (Szegedy et al., arXiv 1409.4842, 6; Goyal et al., 1706.02677,
// 5.1). After ten crops that do not fit, the largest one in the middle of such a ratio, as torchvision's
// RandomResizedCrop. A function of its arguments alone.
Crop random_resized_crop(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample, std::int64_t width,
                         std::int64_t height);

// Evaluation's: the picture with its shorter side at 256/224 of image_size, of which the middle is taken (He et al.,
// 1512.03385, 3.4): a square of 7/8 of the shorter side for any image_size.
Crop centre_crop(std::int64_t width, std::int64_t height);

// The smallest M of 1 … 8 at which a crop of a picture decoded at M/8 still has `image_size` pixels on both sides; 8
// where none has.
int eighths_for(const Crop& crop, std::int64_t image_size);

}  // namespace paceline::train
