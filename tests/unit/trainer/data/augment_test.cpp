// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/augment.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace paceline::train {
namespace {

// One 16 × 16 image whose three planes hold 1, 2, 3, … 256 (as bytes, so 0 for 256), shifted by the plane's number.
Dataset counting_image() {
  Dataset data;
  data.image_size = 16;
  data.labels = {0};
  for (int channel = 0; channel < 3; ++channel) {
    for (int i = 0; i < 256; ++i) data.pixels.push_back(static_cast<std::uint8_t>(i + channel));
  }
  return data;
}

const Normalization halves{{10, 20, 30}, {0.5f, 0.25f, 1}};

std::vector<float> prepared(const ImageCut& augmentation) {
  const Dataset data = counting_image();
  std::vector<float> out(data.image_bytes(), -1000.0f);
  prepare_image(data, 0, halves, augmentation, out);
  return out;
}

TEST(PrepareImage, NormalisesEachChannel) {
  const auto out = prepared({});
  EXPECT_EQ(out[0], (0 - 10) * 0.5f);
  EXPECT_EQ(out[255], (255 - 10) * 0.5f);
  EXPECT_EQ(out[256 + 37], (38 - 20) * 0.25f);
  EXPECT_EQ(out[512 + 100], 102 - 30);
}

TEST(PrepareImage, FlipMirrorsEachRow) {
  const auto plain = prepared({}), flipped = prepared({0, 0, true});
  for (std::size_t row = 0; row < 48; ++row) {
    for (std::size_t x = 0; x < 16; ++x) EXPECT_EQ(flipped[row * 16 + x], plain[row * 16 + 15 - x]);
  }
}

TEST(PrepareImage, ShiftMovesTheCropAndPadsWithTheMeanColour) {
  const auto plain = prepared({}), shifted = prepared({2, -1, false});
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < 16; ++y) {
      for (int x = 0; x < 16; ++x) {
        const bool inside = y >= 1 && x < 14;
        const int from = (channel * 16 + y - 1) * 16 + x + 2;
        const float expected = inside ? plain[static_cast<std::size_t>(from)] : 0.0f;
        EXPECT_EQ(shifted[static_cast<std::size_t>((channel * 16 + y) * 16 + x)], expected) << x << " " << y;
      }
    }
  }
}

std::vector<float> resized(const ImageCut& augmentation, std::int64_t size) {
  const Dataset data = counting_image();
  std::vector<float> out(static_cast<std::size_t>(3 * size * size), -1000.0f);
  prepare_resized(data, 0, halves, augmentation, size, out);
  return out;
}

TEST(PrepareResized, ToItsOwnSizeChangesNothing) {
  for (const ImageCut& a : {ImageCut{}, ImageCut{2, -1, true}, ImageCut{-2, 1, false}}) {
    EXPECT_EQ(resized(a, 16), prepared(a));
  }
}

// At twice the size, output pixels are a quarter of a pixel away from the input's; the outermost ones repeat them. The
// image grows by 1 to the right and by 16 downwards.
TEST(PrepareResized, InterpolatesLinearlyBetweenPixelCentres) {
  const auto out = resized({}, 32);
  const auto at = [&](std::size_t y, std::size_t x) { return out[y * 32 + x] / halves.scale[0] + halves.mean[0]; };
  EXPECT_EQ(at(0, 0), 0);
  EXPECT_EQ(at(0, 1), 0.25f);
  EXPECT_EQ(at(0, 2), 0.75f);
  EXPECT_EQ(at(1, 0), 4);
  EXPECT_EQ(at(2, 2), 12.75f);
  EXPECT_EQ(at(31, 31), 255);
}

TEST(PrepareResized, ShiftsAndFlipsEnlargedImages) {
  const auto straight = resized({}, 40), moved = resized({5, -3, true}, 40);
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < 40; ++y) {
      for (int x = 0; x < 40; ++x) {
        const int from_x = 39 - x + 5, from_y = y - 3, from = (channel * 40 + from_y) * 40 + from_x;
        const bool inside = from_x >= 0 && from_x < 40 && from_y >= 0;
        const float expected = inside ? straight[static_cast<std::size_t>(from)] : 0;
        EXPECT_EQ(moved[static_cast<std::size_t>((channel * 40 + y) * 40 + x)], expected) << x << " " << y;
      }
    }
  }
}

TEST(Augmentation, IsAFunctionOfSeedEpochAndSample) {
  const auto same = [](const ImageCut& a, const ImageCut& b) {
    return a.shift_x == b.shift_x && a.shift_y == b.shift_y && a.flip == b.flip;
  };
  int differing_epoch = 0, differing_sample = 0, differing_seed = 0;
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const ImageCut a = augmentation_of(1, 2, sample, 32);
    EXPECT_TRUE(same(a, augmentation_of(1, 2, sample, 32)));
    differing_epoch += !same(a, augmentation_of(1, 3, sample, 32));
    differing_sample += !same(a, augmentation_of(1, 2, sample + 1, 32));
    differing_seed += !same(a, augmentation_of(2, 2, sample, 32));
  }
  // Two independent ones agree with probability 1/162.
  EXPECT_GE(differing_epoch, 95);
  EXPECT_GE(differing_sample, 95);
  EXPECT_GE(differing_seed, 95);
}

TEST(Augmentation, ReachesEveryCropWithinFourPixelsAndBothMirrorings) {
  std::set<std::pair<std::int64_t, std::int64_t>> crops;
  int flips = 0;
  for (std::uint64_t sample = 0; sample < 4000; ++sample) {
    const ImageCut a = augmentation_of(1, 0, sample, 32);
    EXPECT_LE(std::abs(a.shift_x), 4);
    EXPECT_LE(std::abs(a.shift_y), 4);
    crops.insert({a.shift_x, a.shift_y});
    flips += a.flip;
  }
  EXPECT_EQ(crops.size(), 81u);
  EXPECT_NEAR(flips, 2000, 4 * 32);  // 4 standard deviations
}

}  // namespace
}  // namespace paceline::train
