#include "trainer/data/picture.h"

#include <fmt/format.h>

#include "trainer/data/jpeg.h"
#include "trainer/data/whole_picture.h"

namespace paceline::train {

void check_pixels(std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0) throw PictureError("it has no pixels");
  if (width <= most_pixels / height) return;
  throw PictureError(fmt::format("{} × {} pixels are more than the {} million that are read here", width, height,
                                 most_pixels / 1'000'000));
}

std::unique_ptr<PictureReader> open_picture(std::span<const std::uint8_t> bytes) {
  if (is_png(bytes)) return open_png(bytes);
  if (is_webp(bytes)) return open_webp(bytes);
  return std::make_unique<JpegReader>(bytes);
}

}  // namespace paceline::train
