// SPDX-License-Identifier: Apache-2.0
// Each kind of figure has one way to be written.
#include <gtest/gtest.h>

#include <limits>

#include "analysis/text/csv.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

TEST(Numbers, CarryUnitsAndNoMoreDigitsThanAreKnown) {
  EXPECT_EQ(significant(1.234e-7, 3), "1.23e-07");
  EXPECT_EQ(significant(1.234e-6, 3), "0.00000123");
  EXPECT_EQ(significant(0.064729, 3), "0.0647");
  EXPECT_EQ(significant(0.18041, 3), "0.180");
  EXPECT_EQ(significant(9.996, 3), "10.0");
  EXPECT_EQ(significant(1234567, 3), "1,230,000");
  EXPECT_EQ(fixed(-0.0001, 2), "0.00");
  EXPECT_EQ(fixed(-1234.5, 1), "-1,234.5");
  EXPECT_EQ(fixed(std::numeric_limits<double>::infinity(), 1), "∞");
  EXPECT_EQ(percent(0.1234), "12.3 %");
  EXPECT_EQ(percent(0.00123), "0.12 %");
  EXPECT_EQ(percent(share(1, 8)), "12.5 %");
  EXPECT_EQ(share(1, 0), 0);
  EXPECT_EQ(count(10000), "10,000");
  EXPECT_EQ(plural(1, "rank", "ranks"), "1 rank");
  EXPECT_EQ(plural(1200, "rank", "ranks"), "1,200 ranks");
}

TEST(Numbers, OfTimeHaveTheLargestUnitThatFits) {
  EXPECT_EQ(seconds(47.85), "47.85 s");
  EXPECT_EQ(seconds(2394.27), "2,394.3 s");
  EXPECT_EQ(seconds(0.0123), "12.3 ms");
  EXPECT_EQ(seconds(8.5e-7), "850 ns");
  EXPECT_EQ(seconds(1e-10), "0 s");
  EXPECT_EQ(duration(1500), "1.50 µs");
  EXPECT_EQ(point_in_time(1'204'400'000), "1.204 s");
}

TEST(Numbers, OfSizesCountInTensForNetworksAndInTwosForMemory) {
  EXPECT_EQ(bytes(44.7e6), "44.7 MB");
  EXPECT_EQ(bytes_per_second(1.25e9), "1.25 GB/s");
  EXPECT_EQ(images_per_second(173.38), "173.4 images/s");
  EXPECT_EQ(images_per_second(17338.4), "17,338 images/s");
  EXPECT_EQ(memory_size(17179869184.0), "16 GiB");
  EXPECT_EQ(memory_size(1000), "1000 B");
}

TEST(Numbers, OfCountersHaveFourDigitsAndAPrefixThatFitsTheUnit) {
  EXPECT_EQ(quantity(0, "bytes/s"), "0 B/s");
  EXPECT_EQ(quantity(1.25e9, "bytes/s"), "1.250 GB/s");
  EXPECT_EQ(quantity(999.9, "bytes"), "999.9 B");
  EXPECT_EQ(quantity(86'000'000, "bytes"), "86 MB");
  EXPECT_EQ(quantity(187.34, "%"), "187.3 %");
  EXPECT_EQ(quantity(350'001, "mW"), "350.0 W");
  EXPECT_EQ(quantity(1980, "MHz"), "1.980 GHz");
  EXPECT_EQ(quantity(12'345, "/s"), "12.35 k/s");
  EXPECT_EQ(quantity(4, ""), "4");
  EXPECT_EQ(quantity(64, "bits"), "64 bits");
}

TEST(Numbers, HaveTheirIntervalBesideThem) {
  EXPECT_EQ(with_interval("1.69", Interval{1.66, 1.72}, 2), "1.69 (95 %: 1.66–1.72)");
  EXPECT_EQ(with_interval("1.69", std::nullopt, 2), "1.69");
}

TEST(Lists, OfWordsAndRanks) {
  EXPECT_EQ(list_text({}), "");
  EXPECT_EQ(list_text({"a"}), "a");
  EXPECT_EQ(list_text({"a", "b"}), "a and b");
  EXPECT_EQ(list_text({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(joined({"a", "b"}, "; "), "a; b");
  EXPECT_EQ(rank_list({2}), "rank 2");
  EXPECT_EQ(rank_list({0, 1, 3}), "ranks 0, 1 and 3");
  EXPECT_EQ(rank_list({0, 1, 3}, 2), "3 ranks");
  EXPECT_EQ(capitalised(rank_list({0, 1})), "Ranks 0 and 1");
}

TEST(Lists, OfNumbersDrawNeighboursTogether) {
  EXPECT_EQ(number_list({4}), "4");
  EXPECT_EQ(number_list({4, 5, 7, 8, 9, 20}), "4, 5, 7 to 9 and 20");
  EXPECT_EQ(number_list({0, 2, 4, 6, 8, 10, 12, 14, 16, 18}), "0, 2, 4, 6, 8, 10, 12, 14 and 2 more");
  EXPECT_EQ(cpu_list({0, 1, 2, 8}), "0-2,8");
  EXPECT_EQ(cpu_list({}), "");
}

TEST(CsvField, IsQuotedOnlyWhereItMustBe) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"yes\""), "\"say \"\"yes\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

}  // namespace
}  // namespace paceline::analysis
