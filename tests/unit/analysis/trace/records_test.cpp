// SPDX-License-Identifier: Apache-2.0
// The arguments of slices: equal sets are stored once, integers keep all their bits.
#include "analysis/trace/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/rounds.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;

std::vector<Argument> all(const Records& records, RecordId record) {
  std::vector<Argument> found;
  records.each(record, [&](const Argument& argument) { found.push_back(argument); });
  return found;
}

TEST(Records, EqualArgumentsShareOneRecord) {
  Records records;
  const RecordId a = records.with(records.with(0, make_argument(1, 4096U)), make_text(2, 7));
  const RecordId b = records.with(records.with(0, make_argument(1, 4096U)), make_text(2, 7));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, records.with(records.with(0, make_argument(1, 4097U)), make_text(2, 7)));
  EXPECT_THAT(all(records, a), ElementsAre(make_argument(1, 4096U), make_text(2, 7)));
}

TEST(Records, IntegersKeepAllTheirBits) {
  Records records;
  const std::uint64_t large = ~std::uint64_t{0} - 1;
  const RecordId record = records.with(records.with(0, make_argument(1, large)), make_argument(2, std::int64_t{-5}));
  EXPECT_EQ(records.find(record, 1)->whole(), large);
  EXPECT_EQ(records.find(record, 2)->number(), -5.0);
  EXPECT_EQ(records.find(record, 2)->whole(), 0U);
  EXPECT_EQ(records.find(record, 3), std::nullopt);
}

// Against vectors of arguments, with varying ones and others in any order and interleaved slices.
TEST(Records, HoldWhatWasAddedInItsOrder) {
  std::mt19937_64 random(7);
  Records records;
  std::vector<RecordId> record(200, 0);
  std::vector<std::vector<Argument>> expected(record.size());
  for (int step = 0; step < 2000; ++step) {
    const std::size_t slice = random() % record.size();
    const auto key = static_cast<NameId>(1 + random() % 6);
    const std::uint64_t value = random() % 3 == 0 ? random() : random() % 4;
    const Argument argument =
        random() % 4 == 0 ? make_text(key, static_cast<NameId>(value % 100)) : make_argument(key, value);
    record[slice] = records.with(record[slice], argument, random() % 2 == 0);
    expected[slice].push_back(argument);
  }
  for (std::size_t slice = 0; slice < record.size(); ++slice) EXPECT_EQ(all(records, record[slice]), expected[slice]);

  std::vector<NameId> names(101);
  for (NameId id = 0; id < names.size(); ++id) names[id] = 1000 + id;
  records.finish();
  records.rename(names);
  for (std::size_t slice = 0; slice < record.size(); ++slice) {
    for (Argument& argument : expected[slice]) {
      argument.key += 1000;
      if (argument.is_text()) argument.bits += 1000;
    }
    EXPECT_EQ(all(records, record[slice]), expected[slice]);
  }
}

TEST(Records, AKeyWithManyValuesTakesEightBytesForEachOfThem) {
  Records records;
  constexpr auto count = static_cast<std::uint32_t>(1'000'000 / test::stride(5));
  std::vector<RecordId> record(count);
  for (std::uint32_t i = 0; i < count; ++i) record[i] = records.with(0, make_argument(1, std::uint64_t{i} * 3));
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(records.find(record[i], 1)->whole(), std::uint64_t{i} * 3);
  records.finish();
  EXPECT_LT(records.bytes(), count * 8U + (4U << 20));
}

}  // namespace
}  // namespace paceline::analysis
