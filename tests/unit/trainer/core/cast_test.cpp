// SPDX-License-Identifier: Apache-2.0
// Casts to the 16-bit types against a definition in double, on every 16-bit value and every point halfway between two.
#include "trainer/core/cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace paceline::train {
namespace {

// A 16-bit format by its definition: sign, exponent, fraction; subnormal below 2^(1 − bias).
struct Format {
  int fraction_bits, bias;
  std::uint16_t infinity;

  double value(std::uint16_t bits) const {
    const int size = bits & 0x7fff, exponent = size >> fraction_bits, fraction = size & ((1 << fraction_bits) - 1);
    double result = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                  : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    if (size == infinity) result = std::numeric_limits<double>::infinity();
    if (size > infinity) result = std::numeric_limits<double>::quiet_NaN();
    return bits & 0x8000 ? -result : result;
  }
};
constexpr Format half{10, 15, 0x7c00}, bfloat16{7, 127, 0x7f80};

std::vector<std::uint16_t> all_values() {
  std::vector<std::uint16_t> values(65536);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  return values;
}

struct Casts {
  Format format;
  std::uint16_t (*narrow_one)(float);
  float (*widen_one)(std::uint16_t);
  void (*narrow)(std::span<const float>, float, std::uint16_t*);
  void (*widen)(const std::uint16_t*, std::span<float>);
  void (*add)(std::uint16_t*, const std::uint16_t*, std::size_t);
};
const Casts half_casts{half, half_from_float, float_from_half, to_half, from_half, add_half};
const Casts bfloat16_casts{bfloat16,    bfloat16_from_float, float_from_bfloat16,
                           to_bfloat16, from_bfloat16,       add_bfloat16};

class CastTest : public testing::TestWithParam<Casts> {
 protected:
  const Casts& casts = GetParam();

  // Each number alone, and at every position of a loop that is long enough for vector instructions.
  void expect_narrow(float value, std::uint16_t expected) {
    EXPECT_EQ(casts.narrow_one(value), expected) << value;
    values_.push_back(value);
    expected_.push_back(expected);
  }

  void TearDown() override {
    std::vector<std::uint16_t> narrowed(values_.size());
    casts.narrow(values_, 1.0f, narrowed.data());
    EXPECT_TRUE(narrowed == expected_);
  }

 private:
  std::vector<float> values_;
  std::vector<std::uint16_t> expected_;
};

TEST_P(CastTest, WideningGivesTheValueByDefinition) {
  const std::vector<std::uint16_t> all = all_values();
  std::vector<float> widened(all.size());
  casts.widen(all.data(), widened);
  for (const std::uint16_t bits : all) {
    const double expected = casts.format.value(bits);
    for (const float value : {casts.widen_one(bits), widened[bits]}) {
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << bits;
      } else {
        EXPECT_EQ(value, expected) << bits;
      }
      EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
    }
  }
}

TEST_P(CastTest, EveryValueSurvivesBothCasts) {
  for (const std::uint16_t bits : all_values()) {
    if ((bits & 0x7fff) > casts.format.infinity) continue;
    expect_narrow(casts.widen_one(bits), bits);
  }
}

TEST_P(CastTest, NansKeepTheirSign) {
  for (const std::uint16_t bits : all_values()) {
    if ((bits & 0x7fff) <= casts.format.infinity) continue;
    const std::uint16_t back = casts.narrow_one(casts.widen_one(bits));
    EXPECT_GT(back & 0x7fff, casts.format.infinity);
    EXPECT_EQ(back & 0x8000, bits & 0x8000);
    expect_narrow(casts.widen_one(bits), back);
  }
  // A NaN whose payload is in the bits that are cut off.
  expect_narrow(std::bit_cast<float>(0x7f800001u), casts.format.infinity == 0x7c00 ? 0x7e00 : 0x7fc0);
}

TEST_P(CastTest, TiesGoToTheEvenNeighbourAndOtherValuesToTheNearest) {
  for (int size = 0; size < casts.format.infinity; ++size) {
    const auto below = static_cast<std::uint16_t>(size), above = static_cast<std::uint16_t>(size + 1);
    // The neighbour of the largest value is the next one with an unlimited exponent; values from the halfway point on
    // become infinity.
    const double step = size + 1 == casts.format.infinity
                            ? casts.format.value(below) - casts.format.value(static_cast<std::uint16_t>(size - 1))
                            : casts.format.value(above) - casts.format.value(below);
    const auto halfway = static_cast<float>(casts.format.value(below) + step / 2);
    ASSERT_EQ(halfway, casts.format.value(below) + step / 2);
    expect_narrow(halfway, size % 2 == 0 ? below : above);
    expect_narrow(-halfway, static_cast<std::uint16_t>((size % 2 == 0 ? below : above) | 0x8000));
    expect_narrow(std::nextafter(halfway, 0.0f), below);
    expect_narrow(std::nextafter(halfway, std::numeric_limits<float>::infinity()), above);
  }
}

TEST_P(CastTest, ValuesOutOfRangeBecomeInfinite) {
  expect_narrow(std::numeric_limits<float>::max(), casts.format.infinity);
  expect_narrow(-std::numeric_limits<float>::max(), casts.format.infinity | 0x8000);
}

TEST_P(CastTest, DivisionComesBeforeTheCast) {
  const float largest = casts.widen_one(static_cast<std::uint16_t>(casts.format.infinity - 1));
  const std::vector<float> values(19, largest / 3 * 2);  // times 3 out of range for half
  std::vector<std::uint16_t> narrowed(values.size());
  casts.narrow(values, 3.0f, narrowed.data());
  for (const std::uint16_t bits : narrowed) EXPECT_EQ(bits, casts.narrow_one(largest / 3 * 2 / 3.0f));
}

// All pairs would be 2^32: each value with neighbours of many sizes.
TEST_P(CastTest, SumsAreRoundedCorrectly) {
  const std::vector<std::uint16_t> all = all_values();
  for (const int distance : {0, 1, 7, 0x3ff, 0x400, 0x2c00, 0x7123, 0x8000, 0x8001, 0xa3f1}) {
    std::vector<std::uint16_t> others(all.size()), sums = all;
    for (std::size_t i = 0; i < all.size(); ++i) others[i] = static_cast<std::uint16_t>(all[i] + distance);
    casts.add(sums.data(), others.data(), sums.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      // In double the sum of two halves is exact; that of two bfloat16 is once they are within 2^44 of each other,
      // and beyond that the smaller one is below any rounding of the larger.
      const double exact = casts.format.value(all[i]) + casts.format.value(others[i]);
      if (std::isnan(exact)) {
        EXPECT_GT(sums[i] & 0x7fff, casts.format.infinity);
        continue;
      }
      const double got = casts.format.value(sums[i]);
      if (got == exact) continue;
      const auto magnitude = static_cast<std::uint16_t>(sums[i] & 0x7fff);
      if (magnitude == casts.format.infinity) {
        EXPECT_GE(std::abs(exact), casts.format.value(static_cast<std::uint16_t>(magnitude - 1)));
        continue;
      }
      const double error = std::abs(got - exact);
      const double above = casts.format.value(static_cast<std::uint16_t>(magnitude + 1));
      const double below = casts.format.value(static_cast<std::uint16_t>(magnitude - 1));
      const double room = std::abs(exact) > std::abs(got) ? above - std::abs(got) : std::abs(got) - below;
      EXPECT_LE(error, room / 2) << all[i] << " + " << others[i];
      if (error == room / 2) {
        EXPECT_EQ(sums[i] % 2, 0) << all[i] << " + " << others[i];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(half, CastTest, testing::Values(half_casts));
INSTANTIATE_TEST_SUITE_P(bfloat16, CastTest, testing::Values(bfloat16_casts));

}  // namespace
}  // namespace paceline::train
