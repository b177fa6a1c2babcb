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

std::vector<float> prepared(const Augmentation& augmentation) {
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
        const float expected = inside ? plain[static_cast<std::size_t>((channel * 16 + y - 1) * 16 + x + 2)] : 0.0f;
        EXPECT_EQ(shifted[static_cast<std::size_t>((channel * 16 + y) * 16 + x)], expected) << x << " " << y;
      }
    }
  }
}

TEST(Augmentation, IsAFunctionOfSeedEpochAndSample) {
  const auto same = [](const Augmentation& a, const Augmentation& b) {
    return a.shift_x == b.shift_x && a.shift_y == b.shift_y && a.flip == b.flip;
  };
  int differing_epoch = 0, differing_sample = 0, differing_seed = 0;
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const Augmentation a = augmentation_of(1, 2, sample, 32);
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
    const Augmentation a = augmentation_of(1, 0, sample, 32);
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
