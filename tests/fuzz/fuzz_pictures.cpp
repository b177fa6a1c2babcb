// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes to the readers of JPEG, PNG and WebP pictures. Each input is a whole file.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "trainer/data/picture_input.h"

// A picture that is read gives finite pixels between 0 and 255.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::train;
  constexpr std::int64_t side = 16, most_pixels_here = 1 << 20;  // larger pictures only cost time
  try {
    const std::unique_ptr<PictureReader> picture = open_picture({data, size});
    const std::int64_t width = picture->width(), height = picture->height();
    if (width * height > most_pixels_here) return 0;
    std::vector<float> out(3 * side * side);
    prepare_picture(*picture, random_resized_crop(1, 2, size, width, height), side, {{}, {1, 1, 1}}, out);
    for (const float value : out) {
      if (!(value >= 0 && value <= 255)) std::abort();
    }
  } catch (const PictureError&) {
  }
  return 0;
}
