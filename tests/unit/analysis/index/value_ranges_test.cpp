// SPDX-License-Identifier: Apache-2.0
#include "analysis/index/value_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace paceline::analysis {
namespace {

TEST(ValueRanges, AreThoseOfAPlainSearch) {
  std::mt19937_64 random(7);
  for (const std::size_t size : {1, 2, 15, 16, 17, 255, 256, 257, 5000}) {
    std::vector<double> values(size);
    for (double& value : values) value = static_cast<double>(random() % 100'000) - 50'000;
    const ValueRanges ranges(values);
    for (int round = 0; round < 300; ++round) {
      const std::size_t begin = random() % size, end = begin + 1 + random() % (size - begin);
      const auto [low, high] = std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                                   values.begin() + static_cast<std::ptrdiff_t>(end));
      ASSERT_EQ(ranges.over(values, begin, end), (ValueRanges::Range{*low, *high})) << begin << " to " << end;
    }
  }
}

}  // namespace
}  // namespace paceline::analysis
