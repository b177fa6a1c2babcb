// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/picture_input.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "trainer/core/vectorize.h"
#include "trainer/data/jpeg.h"
#include "trainer/data/resample.h"
#include "trainer/data/whole_picture.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void blend_rows(const std::uint8_t* first, const std::uint8_t* second, float weight,
                                   std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const float a = first[i], b = second[i];
    out[i] = a + weight * (b - a);
  }
}

// Four numbers in one register: the colours of a pixel, or four pixels of one plane.
using Four = float __attribute__((vector_size(16)));
constexpr std::size_t slack = 1;  // floats behind a row that are read together with its last pixel

Four load_four(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof four);
  return four;
}

// Transposes four pixels, each red, green, blue and an unused number, into three planes.
void store_planes(const std::array<Four, 4>& pixel, float* out, std::size_t plane) {
  const Four red_green[]{__builtin_shufflevector(pixel[0], pixel[1], 0, 4, 1, 5),
                         __builtin_shufflevector(pixel[2], pixel[3], 0, 4, 1, 5)};
  const Four blue[]{__builtin_shufflevector(pixel[0], pixel[1], 2, 6, 3, 7),
                    __builtin_shufflevector(pixel[2], pixel[3], 2, 6, 3, 7)};
  const std::array<Four, 3> planes{__builtin_shufflevector(red_green[0], red_green[1], 0, 1, 4, 5),
                                   __builtin_shufflevector(red_green[0], red_green[1], 2, 3, 6, 7),
                                   __builtin_shufflevector(blue[0], blue[1], 0, 1, 4, 5)};
  for (std::size_t c = 0; c < 3; ++c) std::memcpy(out + c * plane, &planes[c], sizeof planes[c]);
}

// One row of all three planes. row: red, green, blue, …, and `slack` more.
void write_row(const float* row, std::span<const Tap> columns, const Normalization& normalization, float* out,
               std::size_t plane) {
  const auto& [m, s] = normalization;
  const Four mean{m[0], m[1], m[2], 0}, scale{s[0], s[1], s[2], 0};
  const auto pixel = [&](const Tap& tap) {
    const Four a = load_four(row + 3 * tap.first), b = load_four(row + 3 * tap.second);
    return (a + tap.weight * (b - a) - mean) * scale;
  };
  std::size_t x = 0;
  for (; x + 4 <= columns.size(); x += 4) {
    store_planes({pixel(columns[x]), pixel(columns[x + 1]), pixel(columns[x + 2]), pixel(columns[x + 3])}, out + x,
                 plane);
  }
  for (; x < columns.size(); ++x) {
    const Four one = pixel(columns[x]);
    for (std::size_t c = 0; c < 3; ++c) out[c * plane + x] = one[c];
  }
}

}  // namespace

std::unique_ptr<PictureReader> open_picture(std::span<const std::uint8_t> bytes) {
  if (is_png(bytes)) return open_png(bytes);
  if (is_webp(bytes)) return open_webp(bytes);
  return std::make_unique<JpegReader>(bytes);
}

void prepare_picture(PictureReader& picture, const Crop& crop, std::int64_t image_size,
                     const Normalization& normalization, std::span<float> out) {
  picture.set_eighths(eighths_for(crop, image_size));
  const double scale = picture.scale();
  std::vector<Tap> columns = linear_taps(crop.x * scale, crop.width * scale, image_size, picture.width());
  const std::vector<Tap> rows = linear_taps(crop.y * scale, crop.height * scale, image_size, picture.height());
  picture.start(static_cast<int>(columns.front().first), static_cast<int>(columns.back().second),
                static_cast<int>(rows.front().first));
  for (Tap& tap : columns) {
    tap.first -= picture.first_column();
    tap.second -= picture.first_column();
  }
  if (crop.flip) std::ranges::reverse(columns);

  const std::size_t width = 3 * static_cast<std::size_t>(picture.row_pixels());
  std::array<std::vector<std::uint8_t>, 2> decoded{std::vector<std::uint8_t>(width), std::vector<std::uint8_t>(width)};
  std::vector<float> blended(width + slack);
  const auto line = [&](std::int64_t row) { return decoded[static_cast<std::size_t>(row % 2)].data(); };
  const std::size_t side = static_cast<std::size_t>(image_size), plane = side * side;
  std::int64_t next = rows.front().first;  // the next row to decode
  for (std::size_t y = 0; y < side; ++y) {
    for (; next <= rows[y].second; ++next) picture.row(line(next));
    blend_rows(line(rows[y].first), line(rows[y].second), rows[y].weight, width, blended.data());
    write_row(blended.data(), columns, normalization, out.data() + y * side, plane);
  }
  picture.finish();
}

}  // namespace paceline::train
