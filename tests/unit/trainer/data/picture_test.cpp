// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/picture.h"

#include <gmock/gmock.h>
#include <png.h>
#include <webp/encode.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "trainer/data/jpeg.h"
#include "trainer/data/picture_input.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

Bytes random_pixels(int width, int height, int channels) {
  std::mt19937 random(7);
  Bytes pixels(static_cast<std::size_t>(width * height * channels));
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random());
  return pixels;
}

// PNG's simplified interface writes, and the program's own reader reads with the other one.
Bytes png_of(int width, int height, std::uint32_t format, const Bytes& pixels, const Bytes& colours = {}) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = format;
  image.colormap_entries = static_cast<png_uint_32>(colours.size() / 3);
  Bytes file(PNG_IMAGE_PNG_SIZE_MAX(image) + colours.size());
  png_alloc_size_t size = file.size();
  EXPECT_NE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0,
                                      colours.empty() ? nullptr : colours.data()),
            0)
      << image.message;
  file.resize(size);
  return file;
}

Bytes webp_of(int width, int height, const Bytes& rgb) {
  std::uint8_t* out = nullptr;
  const std::size_t size = WebPEncodeLosslessRGB(rgb.data(), width, height, 3 * width, &out);
  const Bytes file(out, out + size);
  WebPFree(out);
  return file;
}

Bytes decoded(const Bytes& file, int eighths = 8) {
  const std::unique_ptr<PictureReader> picture = open_picture(file);
  picture->set_eighths(eighths);
  picture->start(0, picture->width() - 1, 0);
  const auto row = 3 * static_cast<std::size_t>(picture->row_pixels());
  Bytes pixels(row * static_cast<std::size_t>(picture->height()));
  for (int y = 0; y < picture->height(); ++y) picture->row(pixels.data() + static_cast<std::size_t>(y) * row);
  picture->finish();
  return pixels;
}

std::string damage_of_file(const Bytes& file) {
  try {
    decoded(file);
  } catch (const PictureError& error) {
    return error.what();
  }
  return {};
}

TEST(Pictures, OfPngAndWebpAreDecodedToTheBit) {
  const Bytes rgb = random_pixels(37, 23, 3);
  EXPECT_EQ(decoded(png_of(37, 23, PNG_FORMAT_RGB, rgb)), rgb);
  EXPECT_EQ(decoded(webp_of(37, 23, rgb)), rgb);
}

TEST(Pictures, OfEveryKindOfPngBecomeRgb) {
  const Bytes grey = random_pixels(9, 5, 1), rgba = random_pixels(9, 5, 4);
  Bytes expected, colours, without_alpha, indices;
  for (const std::uint8_t value : grey) expected.insert(expected.end(), 3, value);
  EXPECT_EQ(decoded(png_of(9, 5, PNG_FORMAT_GRAY, grey)), expected);
  for (std::size_t i = 0; i < rgba.size(); i += 4) without_alpha.insert(without_alpha.end(), &rgba[i], &rgba[i] + 3);
  EXPECT_EQ(decoded(png_of(9, 5, PNG_FORMAT_RGBA, rgba)), without_alpha)
      << "Pillow's convert(\"RGB\") ignores alpha, too";
  colours = random_pixels(16, 1, 3);
  expected.clear();
  for (int i = 0; i < 45; ++i) {
    const auto index = static_cast<std::uint8_t>(i % 16);
    indices.push_back(index);
    expected.insert(expected.end(), &colours[3 * index], &colours[3 * index] + 3);
  }
  EXPECT_EQ(decoded(png_of(9, 5, PNG_FORMAT_RGB_COLORMAP, indices, colours)), expected);
}

TEST(Pictures, ThatAreReducedAreTheMeansOfBlocks) {
  constexpr int width = 21, height = 10;
  const Bytes rgb = random_pixels(width, height, 3), file = png_of(width, height, PNG_FORMAT_RGB, rgb);
  for (const auto& [eighths, block] : {std::pair{4, 2}, {3, 2}, {2, 4}, {1, 8}}) {
    const Bytes got = decoded(file, eighths);
    const int columns = (width + block - 1) / block, rows = (height + block - 1) / block;
    ASSERT_EQ(got.size(), static_cast<std::size_t>(3 * columns * rows));
    for (int i = 0; i < 3 * columns * rows; ++i) {
      const int left = i / 3 % columns * block, top = i / 3 / columns * block;
      double sum = 0;
      int count = 0;
      for (int y = top; y < std::min(top + block, height); ++y) {
        for (int x = left; x < std::min(left + block, width); ++x, ++count) {
          const int from = 3 * (y * width + x) + i % 3;
          sum += rgb[static_cast<std::size_t>(from)];
        }
      }
      ASSERT_NEAR(got[static_cast<std::size_t>(i)], sum / count, 0.501) << eighths << ' ' << i;
    }
  }
}

// The same picture in three formats gives the same input, but for JPEG's losses and its own way to reduce.
TEST(Pictures, OfAllFormatsGiveTheSameInput) {
  constexpr int side = 300;
  Bytes rgb;
  for (int i = 0; i < side * side; ++i) {
    rgb.insert(rgb.end(), {static_cast<std::uint8_t>(i % side * 255 / side),
                           static_cast<std::uint8_t>(i / side * 255 / side), 90});
  }
  const std::string jpeg = encode_jpeg({side, side, 3, rgb}, 98);
  const Bytes files[]{png_of(side, side, PNG_FORMAT_RGB, rgb), webp_of(side, side, rgb),
                      Bytes(jpeg.begin(), jpeg.end())};
  for (const std::int64_t size : {200, 100, 32}) {
    std::vector<std::vector<float>> inputs;
    for (const Bytes& file : files) {
      const std::unique_ptr<PictureReader> picture = open_picture(file);
      inputs.emplace_back(static_cast<std::size_t>(3 * size * size));
      prepare_picture(*picture, {10, 20, 260, 250, true}, size, {{}, {1, 1, 1}}, inputs.back());
    }
    EXPECT_EQ(inputs[0], inputs[1]);
    for (std::size_t i = 0; i < inputs[0].size(); ++i) ASSERT_NEAR(inputs[0][i], inputs[2][i], 4) << size << ' ' << i;
  }
}

TEST(Pictures, ThatAreDamagedAreNamedErrors) {
  const Bytes rgb = random_pixels(64, 64, 3);
  for (const Bytes& file : {png_of(64, 64, PNG_FORMAT_RGB, rgb), webp_of(64, 64, rgb)}) {
    for (const std::size_t kept : {std::size_t{13}, std::size_t{30}, file.size() / 2, file.size() - 1}) {
      EXPECT_NE(damage_of_file(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(kept))), "") << kept;
    }
  }
  Bytes flipped = png_of(64, 64, PNG_FORMAT_RGB, rgb);
  flipped[flipped.size() / 2] ^= 1;
  EXPECT_NE(damage_of_file(flipped), "") << "PNG has checksums";
  // 40,000 × 40,000 pixels, of which the file holds none.
  Bytes huge = png_of(64, 64, PNG_FORMAT_RGB, rgb);
  const Bytes size{0, 0, 0x9c, 0x40};
  std::ranges::copy(size, huge.begin() + 16);
  std::ranges::copy(size, huge.begin() + 20);
  EXPECT_NE(damage_of_file(huge), "");
  EXPECT_THAT(damage_of_file(Bytes{'h', 'e', 'l', 'l', 'o'}), HasSubstr("Not a JPEG file"));
}

}  // namespace
}  // namespace paceline::train
