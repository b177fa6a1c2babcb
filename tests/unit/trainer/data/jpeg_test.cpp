// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/jpeg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "trainer/core/random.h"
#include "trainer/data/picture_input.h"

namespace paceline::train {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// A smooth picture: red grows to the right, green downwards, blue along the diagonal.
double shade(double x, double y, std::size_t channel) {
  return channel == 0 ? 20 + 1.5 * x : channel == 1 ? 30 + 2 * y : 40 + x / 2 + y / 2;
}

constexpr int width = 93, height = 70;  // partial blocks on both sides

std::string smooth_jpeg(bool progressive = false) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) pixels.push_back(static_cast<std::uint8_t>(std::lround(shade(x, y, c))));
    }
  }
  return encode_jpeg({width, height, 3, pixels}, 97, progressive);
}

std::string noisy_jpeg(int components, bool progressive) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * height * components));
  Random random{7, 7};
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.below(256));
  return encode_jpeg({width, height, components, pixels}, 80, progressive);
}

struct Rows {
  int first_column = 0, columns = 0, rows = 0;
  std::vector<std::uint8_t> pixels;
  const std::uint8_t* at(int x, int y) const { return pixels.data() + 3 * ((x - first_column) + columns * y); }
};

// Reads rows from `top` on with at least the columns from `left` to `right`; finish() reads the rest.
Rows decode(const std::string& file, int eighths, int left = 0, int right = 1 << 20, int top = 0,
            int bottom = 1 << 20) {
  JpegReader jpeg(bytes_of(file));
  jpeg.set_eighths(eighths);
  right = std::min(right, jpeg.width() - 1);
  Rows result;
  result.rows = std::min(bottom, jpeg.height() - 1) - top + 1;
  jpeg.start(left, right, top);
  result.first_column = jpeg.first_column();
  result.columns = jpeg.row_pixels();
  EXPECT_LE(result.first_column, left);
  EXPECT_GT(result.first_column + result.columns, right);
  result.pixels.resize(static_cast<std::size_t>(result.columns) * static_cast<std::size_t>(result.rows) * 3);
  for (int y = 0; y < result.rows; ++y) jpeg.row(result.pixels.data() + 3 * result.columns * y);
  jpeg.finish();
  return result;
}

TEST(Jpeg, DecodesAKnownPictureAtEveryScale) {
  for (const bool progressive : {false, true}) {
    const std::string file = smooth_jpeg(progressive);
    for (int eighths = 1; eighths <= 8; ++eighths) {
      const Rows rows = decode(file, eighths);
      ASSERT_EQ(rows.columns, (width * eighths + 7) / 8);
      ASSERT_EQ(rows.rows, (height * eighths + 7) / 8);
      // The last pixel of a side may cover less than the others.
      for (int y = 0; y + 1 < rows.rows; ++y) {
        for (int x = 0; x + 1 < rows.columns; ++x) {
          const double at_x = (x + 0.5) * 8 / eighths - 0.5, at_y = (y + 0.5) * 8 / eighths - 0.5;
          for (std::size_t c = 0; c < 3; ++c) {
            ASSERT_NEAR(rows.at(x, y)[c], shade(at_x, at_y, c), 5) << eighths << " " << x << " " << y << " " << c;
          }
        }
      }
    }
  }
}

TEST(Jpeg, AWindowHasThePixelsOfTheWholePicture) {
  for (const int components : {1, 3, 4}) {
    for (const bool progressive : {false, true}) {
      const std::string file = noisy_jpeg(components, progressive);
      for (int eighths = 1; eighths <= 8; ++eighths) {
        const Rows whole = decode(file, eighths);
        Random random{1, static_cast<std::uint64_t>(eighths)};
        for (int repeat = 0; repeat < 6; ++repeat) {
          const auto draw = [&](int low, int end) {
            return low + static_cast<int>(random.below(static_cast<std::uint64_t>(end - low)));
          };
          const int left = draw(0, whole.columns), right = draw(left, whole.columns);
          const int top = draw(0, whole.rows), bottom = draw(top, whole.rows);
          const Rows part = decode(file, eighths, left, right, top, bottom);
          const auto bytes = 3 * static_cast<std::size_t>(right - left + 1);
          for (int y = top; y <= bottom; ++y) {
            ASSERT_EQ(std::memcmp(part.at(left, y - top), whole.at(left, y), bytes), 0)
                << components << " components, " << eighths << "/8, window " << left << "–" << right << " × " << top
                << "–" << bottom << ", row " << y;
          }
        }
      }
    }
  }
}

TEST(Jpeg, ConvertsGreyAndCmykToColours) {
  const std::vector<std::uint8_t> grey(64, 77);
  const Rows of_grey = decode(encode_jpeg({8, 8, 1, grey}, 100), 8);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(of_grey.at(3, 3)[c], 77, 1);

  std::vector<std::uint8_t> inks;
  for (int i = 0; i < 64; ++i) inks.insert(inks.end(), {200, 100, 50, 128});
  const Rows of_inks = decode(encode_jpeg({8, 8, 4, inks}, 100), 8);
  EXPECT_NEAR(of_inks.at(3, 3)[0], 200 * 128 / 255, 2);
  EXPECT_NEAR(of_inks.at(3, 3)[1], 100 * 128 / 255, 2);
  EXPECT_NEAR(of_inks.at(3, 3)[2], 50 * 128 / 255, 2);
}

const Normalization plain{{0, 0, 0}, {1, 1, 1}};

std::vector<float> prepared_crop(const std::string& file, const Crop& crop, std::int64_t size,
                                 const Normalization& normalization = plain) {
  JpegReader jpeg(bytes_of(file));
  std::vector<float> out(static_cast<std::size_t>(3 * size * size), -1000);
  prepare_picture(jpeg, crop, size, normalization, out);
  return out;
}

// Crops at several scales: output pixel (x, y) shows the picture at the crop's corner + (x + ½) × crop ÷ size − ½.
TEST(PrepareJpeg, ShowsTheCropOfAKnownPicture) {
  const std::string file = smooth_jpeg();
  for (const Crop& crop : {Crop{0, 0, 93, 70, false}, Crop{11, 5, 64, 60, false}, Crop{40.25, 20.5, 30.5, 30.5, false},
                           Crop{80, 60, 10, 8, false}}) {
    for (const std::int64_t size : {8, 15, 32}) {
      const std::vector<float> out = prepared_crop(file, crop, size);
      for (std::int64_t y = 1; y + 1 < size; ++y) {
        for (std::int64_t x = 1; x + 1 < size; ++x) {
          const double at_x = crop.x + (static_cast<double>(x) + 0.5) * crop.width / static_cast<double>(size) - 0.5;
          const double at_y = crop.y + (static_cast<double>(y) + 0.5) * crop.height / static_cast<double>(size) - 0.5;
          for (std::size_t c = 0; c < 3; ++c) {
            const auto place = static_cast<std::size_t>((static_cast<std::int64_t>(c) * size + y) * size + x);
            ASSERT_NEAR(out[place], shade(at_x, at_y, c), 6) << crop.x << " " << size << " " << x << " " << y;
          }
        }
      }
    }
  }
}

TEST(PrepareJpeg, OneToOneIsTheDecodedPictureNormalised) {
  const std::string file = noisy_jpeg(3, false);
  const Rows whole = decode(file, 8);
  const Normalization halves{{10, 20, 30}, {0.5f, 0.25f, 2}};
  const std::vector<float> out = prepared_crop(file, {13, 7, 48, 48, false}, 48, halves);
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 48; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const float expected = (static_cast<float>(whole.at(13 + x, 7 + y)[c]) - halves.mean[c]) * halves.scale[c];
        ASSERT_EQ(out[(c * 48 + static_cast<std::size_t>(y)) * 48 + static_cast<std::size_t>(x)], expected);
      }
    }
  }
}

TEST(PrepareJpeg, FlipMirrorsEachRow) {
  const std::string file = noisy_jpeg(3, false);
  const auto straight = prepared_crop(file, {3, 2, 61, 50, false}, 24),
             flipped = prepared_crop(file, {3, 2, 61, 50, true}, 24);
  for (std::size_t row = 0; row < 72; ++row) {
    for (std::size_t x = 0; x < 24; ++x) ASSERT_EQ(flipped[row * 24 + x], straight[row * 24 + 23 - x]);
  }
}

std::string damage_of(const std::string& file, const Crop& crop = {0, 0, 8, 8, false}) try {
  prepared_crop(file, crop, 8);
  return "";
} catch (const PictureError& error) {
  return error.what();
}

// For any crop.
TEST(BrokenJpeg, IsAnErrorIfItIsCutOffAnywhere) {
  for (const bool progressive : {false, true}) {
    const std::string file = noisy_jpeg(3, progressive);
    ASSERT_EQ(damage_of(file), "");
    for (std::size_t length = 0; length < file.size(); length += length < 700 ? 1 : 37) {
      EXPECT_NE(damage_of(file.substr(0, length)), "") << length << " of " << file.size() << " bytes";
    }
    EXPECT_NE(damage_of(file.substr(0, file.size() - 1)), "");
    EXPECT_NE(damage_of(file.substr(0, file.size() - 2)), "") << "without its end marker";
  }
}

TEST(BrokenJpeg, HasAShortErrorMessage) {
  EXPECT_EQ(damage_of(""), "Empty input file");
  EXPECT_EQ(damage_of("\x89PNG\r\n"), "Not a JPEG file: starts with 0x89 0x50");
  EXPECT_EQ(damage_of(smooth_jpeg().substr(0, 900)), "Premature end of JPEG file");
  std::string huge = smooth_jpeg();
  const std::size_t frame = huge.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  huge.replace(frame + 5, 4, "\xfd\xe8\xfd\xe8");
  EXPECT_EQ(damage_of(huge), "65000 × 65000 pixels are more than the 134 million that are read here");
}

TEST(BrokenJpeg, ExtraBytesAreDamage) {
  std::string file = smooth_jpeg();
  file.insert(file.size() - 2, "some bytes that belong to nothing");
  EXPECT_EQ(damage_of(file), "Corrupt JPEG data: 26 extraneous bytes before marker 0xd9");
}

// Damage in the picture's data, after which libjpeg goes on with only a warning.
TEST(BrokenJpeg, WarningsOfLibjpegAreErrors) {
  for (const bool progressive : {false, true}) {
    const std::string whole = noisy_jpeg(3, progressive);
    const std::size_t middle = whole.size() / 2;
    std::vector<std::pair<const char*, std::string>> files;
    const auto changed = [&](const char* what, auto change) {
      files.emplace_back(what, whole);
      change(files.back().second);
    };
    changed("a block of zeros", [&](std::string& file) { file.replace(middle, 512, 512, '\0'); });
    changed("a block of ones", [&](std::string& file) { file.replace(middle, 512, 512, '\xff'); });
    changed("a block is missing", [&](std::string& file) { file.erase(middle, 512); });
    changed("a block twice", [&](std::string& file) { file.insert(middle, whole.substr(middle, 512)); });
    changed("blocks in another order", [&](std::string& file) {
      file.replace(middle, 512, whole.substr(middle + 512, 512));
      file.replace(middle + 512, 512, whole.substr(middle, 512));
    });
    changed("an end in the middle", [&](std::string& file) { file.replace(middle, 2, "\xff\xd9"); });
    changed("a restart that was not announced", [&](std::string& file) { file.replace(middle, 2, "\xff\xd3"); });
    for (const auto& [what, file] : files) EXPECT_NE(damage_of(file), "") << what << ", progressive " << progressive;
  }
}

// Bytes changed at random give an error or a picture; AddressSanitizer finds other effects.
TEST(BrokenJpeg, AnyDamageGivesAnErrorOrAPicture) {
  int errors = 0;
  for (const bool progressive : {false, true}) {
    const std::string whole = noisy_jpeg(3, progressive);
    for (std::uint64_t repeat = 0; repeat < 300; ++repeat) {
      Random random{11, repeat};
      std::string file = whole;
      for (int change = 0; change < 3; ++change) {
        const std::size_t end = repeat % 2 == 0 ? 620 : file.size();  // every other repetition changes the headers
        file[2 + random.below(end - 2)] = static_cast<char>(random.below(256));
      }
      const Crop crop = random_resized_crop(1, 0, repeat, 60, 60);
      errors += !damage_of(file, crop).empty();
    }
  }
  EXPECT_GT(errors, 100);
}

}  // namespace
}  // namespace paceline::train
