// SPDX-License-Identifier: Apache-2.0
// How a stored image is shifted and mirrored.
#pragma once

#include <cstdint>

namespace paceline::train {

// Pixel (y, x) that the network sees is pixel (y + shift_y, x + shift_x) of the stored image, where x counts from the
// right if the image is flipped; it is 0 outside of the image. Kernels read this type as it is.
struct ImageCut {
  std::int32_t shift_x = 0, shift_y = 0;
  std::int32_t flip = 0;
};

}  // namespace paceline::train
