// SPDX-License-Identifier: Apache-2.0
#include "analysis/exporters/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ExportSelection, ReadsListsOfRanks) {
  EXPECT_THAT(parse_ranks("0,2,5-9"), ElementsAre(Pair(0, 0), Pair(2, 2), Pair(5, 9)));
  for (const char* wrong : {"", ",", "1,", "-1", "3-", "3-2", "a", "1 2", "1-2-3", "99999999999999999999"}) {
    EXPECT_THROW(parse_ranks(wrong), Error) << wrong;
  }
}

TEST(ExportSelection, ReadsIterations) {
  EXPECT_EQ(parse_iterations("10:12"), NumberRange(10, 12));
  EXPECT_EQ(parse_iterations("7"), NumberRange(7, 7));
  EXPECT_EQ(parse_iterations("7:").second, std::numeric_limits<std::int64_t>::max());
  for (const char* wrong : {"", ":", ":3", "3:2", "a:b", "1:2:3", "-1:2"}) {
    EXPECT_THROW(parse_iterations(wrong), Error) << wrong;
  }
}

TEST(ExportSelection, ReadsTimesToTheNanosecond) {
  EXPECT_EQ(parse_time("1.5s"), 1'500'000'000);
  EXPECT_EQ(parse_time("1.5"), 1'500'000'000);
  EXPECT_EQ(parse_time("200ms"), 200'000'000);
  EXPECT_EQ(parse_time(".25us"), 250);
  EXPECT_EQ(parse_time("2µs"), 2000);
  EXPECT_EQ(parse_time("-10ns"), -10);
  EXPECT_EQ(parse_time("2min"), 120'000'000'000);
  EXPECT_EQ(parse_time("12345678.123456789s"), 12'345'678'123'456'789);  // a double has 16 digits
  for (const char* wrong : {"", "s", ".", "1.2.3s", "1h", "1 s", "1e3s", "99999999999999s", "nan"}) {
    EXPECT_THROW(parse_time(wrong), Error) << wrong;
  }
}

TEST(ExportSelection, TakesTheSamplesOfTheWindowAndTheOneBefore) {
  const std::vector<std::int64_t> times = {10, 20, 30, 40};
  const auto taken = [&](std::int64_t from, std::int64_t until) {
    return Selection(TimeWindow{from, until}).samples(times);
  };
  EXPECT_EQ(Selection().samples(times), std::pair(std::size_t{0}, std::size_t{4}));
  EXPECT_EQ(taken(20, 40), std::pair(std::size_t{1}, std::size_t{3}));
  EXPECT_EQ(taken(21, 40), std::pair(std::size_t{1}, std::size_t{3}));  // 20 holds at 21
  EXPECT_EQ(taken(22, 25), std::pair(std::size_t{1}, std::size_t{2}));
  EXPECT_EQ(taken(50, 60), std::pair(std::size_t{3}, std::size_t{4}));
  EXPECT_EQ(taken(0, 10), std::pair(std::size_t{0}, std::size_t{0}));
}

TEST(ExportSelection, ASliceThatOnlyTouchesTheWindowIsOutside) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  for (const auto& [start, end] : {std::pair{0, 10}, {5, 5}, {10, 10}, {10, 20}, {15, 30}, {20, 20}, {20, 25}}) {
    main.add_slice(start, end, "slice");
  }
  const Trace trace = run.finish();
  const Selection selection(TimeWindow{10, 20});
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;
  for (const Track& track : trace.ranks[0].tracks) {
    for (std::uint32_t i = 0; i < selection.end_of(track.slices); ++i) {
      if (const auto slice = selection.slice(track.slices, i)) taken.emplace_back(slice->start_ns, slice->end_ns());
    }
  }
  EXPECT_THAT(taken, testing::UnorderedElementsAre(Pair(10, 10), Pair(10, 20), Pair(15, 20)));
}

Trace run_with_iterations() {
  TraceBuilder run;
  for (const int rank : {0, 1}) {
    TrackBuilder& main = run.add_rank(rank, 2).add_main_thread();
    for (int i = 0; i < 4; ++i) {
      main.add_slice(1000 * i + 10 * rank, 1000 * i + 900 + 10 * rank, "iteration");
      main.argument("payload", i + 5);
    }
  }
  return run.finish();
}

TEST(ExportSelection, TheWindowOfIterationsIsOneForAllChosenRanks) {
  const Trace trace = run_with_iterations();
  EXPECT_EQ(window_of_iterations(trace, {}, {6, 7}), (TimeWindow{1000, 2910}));
  EXPECT_EQ(window_of_iterations(trace, Selection({}, {{1, 1}}), {6, 6}), (TimeWindow{1010, 1910}));
  EXPECT_EQ(window_of_iterations(trace, {}, {8, 1000}), (TimeWindow{3000, 3910}));
}

TEST(ExportSelection, IterationsThatAreNotThereAreRefusedWithThoseThatAre) {
  const Trace trace = run_with_iterations();
  try {
    window_of_iterations(trace, {}, {1, 4});
    FAIL() << "iterations 1 to 4 do not exist";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no iteration 1"));
    EXPECT_THAT(error.what(), testing::HasSubstr("5 to 8"));
  }
  TraceBuilder run;
  run.add_rank(0).add_main_thread().add_slice(0, 1, "work");
  EXPECT_THROW(window_of_iterations(run.finish(), {}, {0, 1}), Error);
}

}  // namespace
}  // namespace paceline::analysis
