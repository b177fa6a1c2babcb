// SPDX-License-Identifier: Apache-2.0
// How the looks at a running job share their level.
#include "analysis/watch/lateness_looks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace paceline::analysis {
namespace lateness_looks_test {
namespace {

constexpr std::uint64_t iterations = 200;

// Two ranks, the second of which comes later by a part of the noise.
LatenessTable table_of(double late) {
  std::mt19937 draw(7);
  std::normal_distribution<double> noise(0, 1);
  LatenessTable table;
  table.ranks = 2;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const double arrivals[] = {1e6 * noise(draw), 1e6 * (noise(draw) + late)};
    const double last = std::max(arrivals[0], arrivals[1]);
    const double waits[] = {last - arrivals[0], last - arrivals[1]};
    LatenessRow row;
    row.step_ns = 1e7;
    add_collective(row, arrivals, waits);
    add_iteration(table, static_cast<std::int64_t>(i), row);
  }
  return table;
}

bool names(LatenessLooks& looks, double late, bool ended) {
  return !looks.look(table_of(late), iterations, ended).late.empty();
}

// The least lateness that a new series of looks names, the last one of a job that has ended or not.
double least_named(int looks_before, bool ended) {
  for (double late = 0;; late += 0.002) {
    LatenessLooks looks;
    for (int i = 0; i < looks_before; ++i) looks.look(table_of(0), iterations, false);
    if (names(looks, late, ended)) return late;
  }
}

TEST(LatenessLooks, MostOfTheLevelIsKeptForTheEnd) {
  const double at_the_end = least_named(0, true), first = least_named(0, false), fourth = least_named(3, false);
  EXPECT_GT(at_the_end, 0);
  EXPECT_LT(at_the_end, first);
  EXPECT_LT(first, fourth);
  EXPECT_EQ(least_named(3, true), at_the_end) << "looks before the end take nothing of it";
  LatenessLooks looks;
  EXPECT_TRUE(names(looks, at_the_end, true));
  EXPECT_FALSE(names(looks, at_the_end, true)) << "it is spent once";
}

}  // namespace
}  // namespace lateness_looks_test
}  // namespace paceline::analysis
