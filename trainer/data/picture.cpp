// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/picture.h"

#include <fmt/format.h>

namespace paceline::train {

void check_pixels(std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0) throw PictureError("it has no pixels");
  if (width <= most_pixels / height) return;
  throw PictureError(fmt::format("{} × {} pixels are more than the {} million that are read here", width, height,
                                 most_pixels / 1'000'000));
}

}  // namespace paceline::train
