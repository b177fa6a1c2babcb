// SPDX-License-Identifier: Apache-2.0
#include "analysis/index/level_of_detail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/rounds.h"

namespace paceline::analysis {
namespace {

using Item = LevelOfDetail::Item;

// The definition, read off the slices one by one.
std::vector<Item> naive_items(const Slices& slices, unsigned depth, const PixelColumns& columns) {
  std::vector<Item> items;
  bool folding = false;  // narrow slices of this column join the last item
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    if (slices.depth[i] != depth) continue;
    const double from = columns.x(slices.start_ns[i]), to = columns.x(slices.end_ns(i));
    if ((from < 0 && to <= 0) || from >= columns.count) continue;
    const auto inside = [&](double x) { return static_cast<int>(std::clamp(x, -1.0, double(columns.count))); };
    if (static_cast<double>(slices.duration_ns[i]) >= columns.ns_per_pixel) {
      const int first = inside(std::round(from));
      items.push_back({first, std::max(first + 1, inside(std::round(to))), i, i, 1});
      folding = false;
      continue;
    }
    const int column = columns.column(slices.start_ns[i]);
    if (!folding || items.back().first != column) items.push_back({column, column + 1, i, i, 0});
    folding = true;
    Item& item = items.back();
    ++item.count;
    if (slices.duration_ns[i] > slices.duration_ns[item.slice]) item.slice = i;
    if (from <= column + 0.5) item.middle = i;
  }
  return items;
}

// Slices that nest, with durations from nanoseconds to seconds, in the order that a trace keeps.
Slices random_slices(std::mt19937_64& random, std::size_t count) {
  Slices slices;
  std::int64_t now = 0;
  const auto log_uniform = [&](double decades) {
    return static_cast<std::int64_t>(std::pow(10.0, std::uniform_real_distribution<double>(0, decades)(random)));
  };
  const auto add = [&](std::int64_t start, std::int64_t duration, std::uint16_t depth) {
    slices.start_ns.push_back(start);
    slices.duration_ns.push_back(duration);
    slices.kind.push_back(0);
    slices.record.push_back(0);
    slices.depth.push_back(depth);
  };
  while (slices.size() < count) {
    now += random() % 3 == 0 ? 0 : log_uniform(6);
    const std::int64_t length = log_uniform(8);
    add(now, length, 0);
    std::int64_t inner = now;
    for (std::uint64_t n = random() % 5; n > 0; --n) {
      const std::int64_t part = std::min(log_uniform(7), now + length - inner);
      if (part <= 0) break;
      add(inner, part, 1);
      inner += part + static_cast<std::int64_t>(random() % 100);
    }
    now += length;
  }
  return slices;
}

TEST(LevelOfDetail, GivesWhatAScanOfAllSlicesGives) {
  std::mt19937_64 random(20180918);
  for (std::size_t round = 0; round < 300; round += test::stride(10)) {
    const Slices slices = random_slices(random, 1 + random() % 3000);
    const LevelOfDetail index(slices);
    const auto span = static_cast<double>(slices.end_ns(slices.size() - 1) + slices.duration_ns.back());
    for (int view = 0; view < 8; ++view) {
      const int width = 1 + static_cast<int>(random() % 500);
      const double length = span * std::pow(10.0, -std::uniform_real_distribution<double>(0, 5)(random));
      const double begin = std::uniform_real_distribution<double>(-0.1 * length, span)(random);
      const PixelColumns columns{begin, length / width, width};
      for (unsigned depth = 0; depth < index.depths(); ++depth) {
        std::vector<Item> items;
        index.items(slices, depth, columns, items);
        std::vector<Item> expected = naive_items(slices, depth, columns);
        ASSERT_EQ(items, expected) << "round " << round << ", view " << view << ", depth " << depth;
        // Without the longest slices of folds, where no slice of the depth takes half a pixel.
        const double least_ns = columns.ns_per_pixel / 2;
        bool any_long = false;
        for (std::size_t i = 0; i < slices.size(); ++i) {
          any_long = any_long || (slices.depth[i] == depth && double(slices.duration_ns[i]) >= least_ns);
        }
        for (Item& item : expected) {
          if (!any_long) item.slice = item.middle;
        }
        index.items(slices, depth, columns, items, least_ns);
        ASSERT_EQ(items, expected) << "round " << round << ", view " << view << ", depth " << depth;
      }
    }
  }
}

TEST(LevelOfDetail, HasAtMostTwoItemsAColumnHoweverManySlices) {
  std::mt19937_64 random(3);
  const Slices slices = random_slices(random, 400'000);
  const LevelOfDetail index(slices);
  const double span = static_cast<double>(slices.end_ns(slices.size() - 1));
  std::vector<Item> items;
  for (const int width : {100, 1000, 4000}) {
    index.items(slices, 1, {0, span / width, width}, items);
    EXPECT_GT(items.size(), static_cast<std::size_t>(width) / 4);
    EXPECT_LE(items.size(), 2 * static_cast<std::size_t>(width));
  }
}

TEST(LevelOfDetail, CountsEverySliceOnce) {
  std::mt19937_64 random(4);
  const Slices slices = random_slices(random, 50'000);
  const LevelOfDetail index(slices);
  std::vector<Item> items;
  std::size_t counted = 0;
  for (unsigned depth = 0; depth < index.depths(); ++depth) {
    index.items(slices, depth, {-1, static_cast<double>(slices.end_ns(slices.size() - 1) + 10) / 800, 800}, items);
    for (const Item& item : items) counted += item.count;
  }
  EXPECT_EQ(counted, slices.size());
}

TEST(LevelOfDetail, TakesLessThanFiveBytesASlice) {
  std::mt19937_64 random(5);
  const Slices slices = random_slices(random, 100'000);
  EXPECT_LT(LevelOfDetail(slices).bytes(), slices.size() * 5);
}

TEST(LevelOfDetail, OfOneDepthTakesLessThanAByteASlice) {
  std::mt19937_64 random(6);
  Slices slices = random_slices(random, 100'000);
  slices.depth.assign(slices.size(), 0);
  EXPECT_LT(LevelOfDetail(slices).bytes(), slices.size());
}

// A row of some kinds gives what a track of their copies gives.
TEST(LevelOfDetail, OfSomeKindsIsThatOfACopyOfTheirSlices) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 40; ++round) {
    Slices slices = random_slices(random, 500);
    const unsigned first_other = random() % 3 == 0 ? 250 : 0;  // all wanted up to there
    std::vector<std::uint32_t> origin;
    Slices copy;
    std::vector<std::int64_t> open_ends;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      slices.kind[i] = i < first_other ? 1 : static_cast<KindId>(random() % 3);
      if (slices.kind[i] != 1) continue;
      while (!open_ends.empty() && open_ends.back() <= slices.start_ns[i]) open_ends.pop_back();
      origin.push_back(i);
      copy.start_ns.push_back(slices.start_ns[i]);
      copy.duration_ns.push_back(slices.duration_ns[i]);
      copy.depth.push_back(static_cast<std::uint16_t>(open_ends.size()));
      open_ends.push_back(slices.end_ns(i));
    }
    const LevelOfDetail row(slices, {false, true, false}), expected(copy);
    ASSERT_EQ(row.depths(), expected.depths());
    for (unsigned depth = 0; depth < row.depths(); ++depth) {
      ASSERT_EQ(row.count(depth), expected.count(depth));
      for (std::size_t i = 0; i < row.count(depth); ++i) {
        ASSERT_EQ(row.slice(depth, i), origin[expected.slice(depth, i)]);
        ASSERT_EQ(row.position(depth, row.slice(depth, i)), i);
      }
      for (const double width : {1e3, 1e6, 1e8}) {
        const PixelColumns columns{0, width, 300};
        std::vector<Item> items, plain;
        row.items(slices, depth, columns, items);
        expected.items(copy, depth, columns, plain);
        for (Item& item : plain) item.slice = origin[item.slice], item.middle = origin[item.middle];
        ASSERT_EQ(items, plain);
      }
    }
  }
}

TEST(LevelOfDetail, FindsTheSliceUnderAPointAndNothingInAGap) {
  Slices slices;
  slices.start_ns = {0, 100, 200};
  slices.duration_ns = {50, 100, 10};
  slices.kind = {0, 0, 0};
  slices.record = {0, 0, 0};
  slices.depth = {0, 0, 0};
  const LevelOfDetail index(slices);
  EXPECT_EQ(index.slice_at(slices, 0, 25, 0), 0u);
  EXPECT_EQ(index.slice_at(slices, 0, 75, 0), std::nullopt);
  EXPECT_EQ(index.slice_at(slices, 0, 75, 26), 1u);  // of two in reach the longer
  EXPECT_EQ(index.slice_at(slices, 0, 150, 0), 1u);
  EXPECT_EQ(index.slice_at(slices, 0, 205, 1), 2u);
  EXPECT_EQ(index.slice_at(slices, 0, 300, 0), std::nullopt);
  EXPECT_EQ(index.slice_at(slices, 7, 25, 0), std::nullopt);
}

TEST(LevelOfDetail, OfNothingIsNothing) {
  const Slices none;
  const LevelOfDetail index(none);
  EXPECT_EQ(index.depths(), 0u);
  std::vector<Item> items{{}};
  index.items(none, 0, {0, 1, 100}, items);
  EXPECT_TRUE(items.empty());
}

}  // namespace
}  // namespace paceline::analysis
