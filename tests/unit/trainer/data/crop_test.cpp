// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/crop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "trainer/data/resample.h"

namespace paceline::train {
namespace {

auto tied(const Crop& c) { return std::tuple(c.x, c.y, c.width, c.height, c.flip); }

TEST(RandomResizedCrop, HasThePapersAreasAndRatiosAndStaysInThePicture) {
  double smallest = 1, largest = 0, left = 500, right = 0;
  int flips = 0;
  for (std::uint64_t sample = 0; sample < 4000; ++sample) {
    const Crop crop = random_resized_crop(1, 0, sample, 500, 375);
    EXPECT_EQ(crop.x, std::floor(crop.x));
    EXPECT_GE(crop.x, 0);
    EXPECT_GE(crop.y, 0);
    EXPECT_LE(crop.x + crop.width, 500);
    EXPECT_LE(crop.y + crop.height, 375);
    // Sides are rounded by half a pixel at most.
    EXPECT_GE((crop.width + 0.5) / (crop.height - 0.5), 3.0 / 4);
    EXPECT_LE((crop.width - 0.5) / (crop.height + 0.5), 4.0 / 3);
    const double area = crop.width * crop.height / (500 * 375);
    EXPECT_GE((crop.width + 0.5) * (crop.height + 0.5), 0.08 * 500 * 375);
    smallest = std::min(smallest, area);
    largest = std::max(largest, area);
    left = std::min(left, crop.x);
    right = std::max(right, crop.x + crop.width);
    flips += crop.flip;
  }
  EXPECT_LT(smallest, 0.085);
  EXPECT_GT(largest, 0.95);
  EXPECT_EQ(left, 0);
  EXPECT_EQ(right, 500);
  EXPECT_NEAR(flips, 2000, 4 * 32);  // 4 standard deviations
}

// If every draw fits, the area is uniform from 8 to 100 %. Crops of up to a quarter of a square always fit. Of 4,000
// draws 17/92 are below a quarter and all of these fit: at least 4000 × 0.1848 − 4 standard deviations (98).
TEST(RandomResizedCrop, DrawsAreasUniformly) {
  int below_quarter = 0, below_sixth = 0;
  for (std::uint64_t sample = 0; sample < 4000; ++sample) {
    const Crop crop = random_resized_crop(3, 1, sample, 1000, 1000);
    below_quarter += crop.width * crop.height < 0.25e6;
    below_sixth += crop.width * crop.height < 0.165e6;
  }
  EXPECT_GE(below_quarter, 739 - 98);
  EXPECT_NEAR(below_sixth, below_quarter / 2, 80);  // 8.5 of 17 hundredths
}

TEST(RandomResizedCrop, IsAFunctionOfSeedEpochAndSample) {
  const auto crop = tied(random_resized_crop(1, 2, 3, 500, 375));
  EXPECT_EQ(tied(random_resized_crop(1, 2, 3, 500, 375)), crop);
  EXPECT_NE(tied(random_resized_crop(2, 2, 3, 500, 375)), crop);
  EXPECT_NE(tied(random_resized_crop(1, 3, 3, 500, 375)), crop);
  EXPECT_NE(tied(random_resized_crop(1, 2, 4, 500, 375)), crop);
}

// Of 1000 × 10 pixels 8 % are 800; at most 4/3 wide that is 25 high at least: no draw fits.
TEST(RandomResizedCrop, TakesTheMiddleIfNoCropFits) {
  Crop crop = random_resized_crop(1, 0, 0, 1000, 10);
  EXPECT_EQ(std::tuple(crop.x, crop.y, crop.width, crop.height), std::tuple(493, 0, 13, 10));
  crop = random_resized_crop(1, 0, 0, 10, 1000);
  EXPECT_EQ(std::tuple(crop.x, crop.y, crop.width, crop.height), std::tuple(0, 493, 10, 13));
  crop = random_resized_crop(1, 0, 0, 1, 1);
  EXPECT_EQ(std::tuple(crop.x, crop.y, crop.width, crop.height), std::tuple(0, 0, 1, 1));
}

// 500 × 375 with the shorter side at 256 is 341.33 × 256, a factor of 0.68267; 224 of these are 328.125.
TEST(CentreCrop, IsTheMiddle224OfAPictureResizedTo256) {
  EXPECT_EQ(tied(centre_crop(500, 375)), std::tuple(85.9375, 23.4375, 328.125, 328.125, false));
  EXPECT_EQ(tied(centre_crop(256, 256)), std::tuple(16.0, 16.0, 224.0, 224.0, false));
  EXPECT_EQ(tied(centre_crop(64, 128)), std::tuple(4.0, 36.0, 56.0, 56.0, false));
}

TEST(Eighths, AreTheFewestWithEnoughPixels) {
  const auto eighths = [](double width, double height) { return eighths_for({0, 0, width, height}, 224); };
  EXPECT_EQ(eighths(1792, 2000), 1);
  EXPECT_EQ(eighths(1791, 2000), 2);
  EXPECT_EQ(eighths(448, 448), 4);
  EXPECT_EQ(eighths(447, 448), 5);
  EXPECT_EQ(eighths(9000, 256), 7);
  EXPECT_EQ(eighths(255, 9000), 8);
  EXPECT_EQ(eighths(20, 20), 8);
}

std::vector<double> places(const std::vector<Tap>& taps) {
  std::vector<double> result;
  for (const Tap& tap : taps) {
    EXPECT_EQ(tap.second, tap.first + (tap.weight > 0));
    result.push_back(static_cast<double>(tap.first) + static_cast<double>(tap.weight));
  }
  return result;
}

TEST(LinearTaps, LieAtTheCentresOfOutputPixels) {
  EXPECT_EQ(places(linear_taps(0, 3, 3, 3)), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(places(linear_taps(0, 4, 2, 4)), (std::vector<double>{0.5, 2.5}));
  EXPECT_EQ(places(linear_taps(0, 2, 4, 2)), (std::vector<double>{0, 0.25, 0.75, 1}));
  EXPECT_EQ(places(linear_taps(5, 4, 2, 100)), (std::vector<double>{5.5, 7.5}));
  EXPECT_EQ(places(linear_taps(5, 2, 4, 100)), (std::vector<double>{5, 5.25, 5.75, 6})) << "nothing beyond the stretch";
  EXPECT_EQ(places(linear_taps(2.5, 0.5, 2, 3)), (std::vector<double>{2, 2})) << "a stretch beyond the last centre";
}

}  // namespace
}  // namespace paceline::train
