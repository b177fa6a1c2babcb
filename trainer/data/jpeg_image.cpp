#include "trainer/data/jpeg_image.h"

#include <algorithm>
#include <array>
#include <vector>

#include "trainer/data/resample.h"
#include "trainer/nn/vectorize.h"

namespace paceline::train {
namespace {

PACELINE_VECTORIZE void blend_rows(const std::uint8_t* first, const std::uint8_t* second, float weight,
                                   std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const float a = first[i], b = second[i];
    out[i] = a + weight * (b - a);
  }
}

// One row of all three planes. row: red, green, blue, …
void write_row(const float* row, std::span<const Tap> columns, const Normalization& normalization, float* out,
               std::size_t plane) {
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const Tap& tap = columns[x];
    const float* a = row + 3 * tap.first;
    const float* b = row + 3 * tap.second;
    for (std::size_t c = 0; c < 3; ++c) {
      out[c * plane + x] = (a[c] + tap.weight * (b[c] - a[c]) - normalization.mean[c]) * normalization.scale[c];
    }
  }
}

}  // namespace

void prepare_jpeg(JpegReader& jpeg, const Crop& crop, std::int64_t image_size, const Normalization& normalization,
                  std::span<float> out) {
  const int eighths = eighths_for(crop, image_size);
  const double scale = eighths / 8.0;
  jpeg.set_eighths(eighths);
  std::vector<Tap> columns = linear_taps(crop.x * scale, crop.width * scale, image_size, jpeg.width());
  const std::vector<Tap> rows = linear_taps(crop.y * scale, crop.height * scale, image_size, jpeg.height());
  jpeg.start(static_cast<int>(columns.front().first), static_cast<int>(columns.back().second),
             static_cast<int>(rows.front().first));
  for (Tap& tap : columns) {
    tap.first -= jpeg.first_column();
    tap.second -= jpeg.first_column();
  }
  if (crop.flip) std::ranges::reverse(columns);

  const std::size_t width = 3 * static_cast<std::size_t>(jpeg.row_pixels());
  std::array<std::vector<std::uint8_t>, 2> decoded{std::vector<std::uint8_t>(width), std::vector<std::uint8_t>(width)};
  std::vector<float> blended(width);
  const auto line = [&](std::int64_t row) { return decoded[static_cast<std::size_t>(row % 2)].data(); };
  const std::size_t side = static_cast<std::size_t>(image_size), plane = side * side;
  std::int64_t next = rows.front().first;  // to be decoded
  for (std::size_t y = 0; y < side; ++y) {
    for (; next <= rows[y].second; ++next) jpeg.row(line(next));
    blend_rows(line(rows[y].first), line(rows[y].second), rows[y].weight, width, blended.data());
    write_row(blended.data(), columns, normalization, out.data() + y * side, plane);
  }
  jpeg.finish();
}

}  // namespace paceline::train
