// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/sampling/python_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::inject {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(PythonLines, OfIncrementsGrowWithTheOffset) {
  // From offset 6 on line 12, from 8 on line 11.
  const Bytes table = {6, 2, 2, 0xff};
  const auto line = [&](std::int64_t offset) { return python_line(PythonLineTable::increments, table, 10, offset); };
  EXPECT_EQ(line(-1), 10u);
  EXPECT_EQ(line(0), 10u);
  EXPECT_EQ(line(5), 10u);
  EXPECT_EQ(line(6), 12u);
  EXPECT_EQ(line(8), 11u);
  EXPECT_EQ(line(100), 11u);
}

TEST(PythonLines, OfRangesMayHaveNone) {
  // [0, 4) line 11, [4, 6) no line, [6, 10) line 14.
  const Bytes table = {4, 1, 2, 0x80, 4, 3};
  const auto line = [&](std::int64_t offset) { return python_line(PythonLineTable::ranges, table, 10, offset); };
  EXPECT_EQ(line(0), 11u);
  EXPECT_EQ(line(4), 10u);
  EXPECT_EQ(line(6), 14u);
  EXPECT_EQ(line(10), 10u);
}

TEST(PythonLines, OfLocationsComeInSixForms) {
  const Bytes table = {
      0x80 | 0 << 3 | 1,  0x11,                    // 2 code units, short: line 10
      0x80 | 11 << 3 | 0, 0x01, 0x02,              // 1, one line: + 1
      0x80 | 13 << 3 | 0, 0x44, 0x01,              // 1, no columns: + 34, as a number of two bytes
      0x80 | 14 << 3 | 2, 0x05, 0x00, 0x01, 0x02,  // 3, all: - 2
      0x80 | 15 << 3 | 0,                          // 1, none
      0x80 | 12 << 3 | 0, 0x01, 0x02,              // 1, one line: + 2
  };
  const auto line = [&](std::int64_t offset) { return python_line(PythonLineTable::locations, table, 10, offset); };
  EXPECT_EQ(line(0), 10u);
  EXPECT_EQ(line(3), 10u);
  EXPECT_EQ(line(4), 11u);
  EXPECT_EQ(line(6), 45u);
  EXPECT_EQ(line(8), 43u);
  EXPECT_EQ(line(13), 43u);
  EXPECT_EQ(line(14), 10u);
  EXPECT_EQ(line(16), 45u);
  EXPECT_EQ(line(18), 10u);
}

TEST(PythonLines, OfDamagedTablesAreSomeLine) {
  for (std::uint32_t seed = 1; seed < 2000; ++seed) {
    Bytes table(seed % 40);
    std::uint32_t random = seed * 2654435761u;
    for (std::uint8_t& byte : table) byte = static_cast<std::uint8_t>((random = random * 1664525 + 1013904223) >> 24);
    for (const auto kind : {PythonLineTable::increments, PythonLineTable::ranges, PythonLineTable::locations}) {
      EXPECT_GT(python_line(kind, table, 10, random % 200), 0u);
    }
  }
}

}  // namespace
}  // namespace paceline::inject
