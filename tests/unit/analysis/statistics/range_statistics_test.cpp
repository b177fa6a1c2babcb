// SPDX-License-Identifier: Apache-2.0
// The time in ranges and calls, and of the device work that they launched, worked out on paper.
#include "analysis/statistics/range_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "analysis/text/labels.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

const RangeStatistics& row(const std::vector<RangeStatistics>& rows, std::string_view name) {
  for (const RangeStatistics& range : rows) {
    if (range.name == name) return range;
  }
  throw std::runtime_error("no row " + std::string(name));
}

TEST(DurationSketch, IsExactForFewDurations) {
  DurationSketch sketch;
  for (const std::int64_t ns : std::vector<std::int64_t>{40, 10, 20, 30'000'000'000}) sketch.add(ns);
  EXPECT_EQ(sketch.count(), 4U);
  EXPECT_EQ(sketch.sum_ns(), 30'000'000'070);
  EXPECT_EQ(sketch.minimum_ns(), 10);
  EXPECT_EQ(sketch.maximum_ns(), 30'000'000'000);
  EXPECT_EQ(sketch.quantile_ns(0.5), 30);
  EXPECT_EQ(sketch.quantile_ns(0), 10);
  EXPECT_NEAR(sketch.stddev_ns(), 15e9 - 70.0 / 6, 1);  // one of four far away: half the distance
}

TEST(DurationSketch, HasNoStandardDeviationOfOneDuration) {
  DurationSketch sketch;
  EXPECT_EQ(sketch.quantile_ns(0.5), 0);
  EXPECT_EQ(sketch.minimum_ns(), 0);
  sketch.add(7);
  EXPECT_EQ(sketch.stddev_ns(), 0);
  EXPECT_EQ(sketch.quantile_ns(0.5), 7);
}

TEST(DurationSketch, ASumOfCenturiesStaysAtTheLongestDuration) {
  constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
  DurationSketch sketch, other;
  for (const std::int64_t ns : {longest, std::int64_t{1}}) sketch.add(ns);
  EXPECT_EQ(sketch.sum_ns(), longest);
  other.add(longest);
  sketch.merge(other);
  EXPECT_EQ(sketch.sum_ns(), longest);
  EXPECT_EQ(sketch.count(), 3U);
  EXPECT_GT(static_cast<std::int64_t>(sketch.quantile_ns(1)), longest - 1025);
}

// 20,000 durations between 1 ns and 30 min, against all of them sorted; also where two sketches are joined.
TEST(DurationSketch, QuantilesOfManyAreWithinOnePercent) {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> distribution(12, 4);
  std::vector<std::int64_t> values;
  DurationSketch whole, first, second;
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(static_cast<std::int64_t>(distribution(random)) + 1);
    whole.add(values.back());
    (i < 700 ? first : second).add(values.back());
    sum += static_cast<double>(values.back());
  }
  first.merge(second);
  double squares = 0;
  for (const std::int64_t value : values) squares += std::pow(static_cast<double>(value) - sum / 20'000, 2);
  std::ranges::sort(values);
  EXPECT_FALSE(whole.exact());
  for (const DurationSketch* sketch : {&whole, &first}) {
    for (const double q : {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}) {
      const auto exact = static_cast<double>(values[static_cast<std::size_t>(std::llround(q * 19'999))]);
      EXPECT_NEAR(sketch->quantile_ns(q), exact, 0.01 * exact) << q;
    }
    EXPECT_EQ(sketch->count(), 20'000U);
    EXPECT_EQ(sketch->minimum_ns(), values.front());
    EXPECT_EQ(sketch->maximum_ns(), values.back());
    EXPECT_NEAR(sketch->stddev_ns() / std::sqrt(squares / 19'999), 1, 1e-9);
  }
}

TEST(RangeStatistics, AddUpEachRangeByDomainAndName) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  main.add_slice(0, 100, "forward", "trainer", "phase");
  main.add_slice(10, 30, "conv1", "trainer", "layer");
  main.add_slice(40, 80, "conv1", "trainer", "layer");
  main.add_slice(100, 400, "conv1", "other");
  main.add_slice(500, 503, "MPI_Send", "mpi", "point-to-point");
  rank.add_track(TrackKind::thread, "loader", 2).add_slice(0, 60, "conv1", "trainer", "layer");
  rank.add_track(TrackKind::stream, "GPU 0 stream 7", 3).add_slice(0, 1000, "kernel", "cuda", "kernel");
  const Trace trace = run.finish();
  const auto rows = range_statistics(trace, trace.ranks[0], nullptr);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].domain, "other");
  EXPECT_EQ(rows[0].durations.sum_ns(), 300);
  EXPECT_EQ(rows[1].category, "layer");
  EXPECT_EQ(rows[1].durations.count(), 3U);
  EXPECT_EQ(rows[1].durations.sum_ns(), 120);
  EXPECT_EQ(rows[1].durations.quantile_ns(0.5), 40);
  EXPECT_DOUBLE_EQ(rows[1].durations.stddev_ns(), 20);
  EXPECT_EQ(rows[2].name, "forward");
  EXPECT_EQ(rows[3].name, "MPI_Send");
  EXPECT_EQ(rows[3].device.operations, 0U);
}

// forward (0 to 100) launches one kernel by itself and one from inside a layer. The layer's second call launches two.
// Another thread launches one more.
TEST(RangeStatistics, ProjectTheWorkOfADeviceOntoTheRangesThatLaunchedIt) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  TrackBuilder& loader = rank.add_track(TrackKind::thread, "loader", 77);
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7", 3);
  const auto launch = [&](TrackBuilder& thread, std::int64_t at, int correlation, std::int64_t begin,
                          std::int64_t end) {
    thread.add_slice(at, at + 4, "cudaLaunchKernel", "cuda", "launch");
    thread.argument("correlation", correlation);
    thread.add_slice(at + 1, at + 3, "cuLaunchKernel", "cuda", "launch");
    thread.argument("correlation", correlation);
    stream.add_slice(begin, end, "kernel", "cuda", "kernel");
    stream.argument("correlation", correlation);
  };
  main.add_slice(0, 100, "forward");
  launch(main, 5, 1, 200, 210);
  main.add_slice(20, 40, "conv1");
  launch(main, 25, 2, 215, 245);
  main.add_slice(50, 90, "conv1");
  launch(main, 55, 3, 250, 300);
  launch(main, 65, 4, 320, 325);
  launch(main, 150, 5, 400, 500);  // outside of all ranges
  loader.add_slice(0, 1000, "load");
  launch(loader, 57, 6, 330, 337);
  const Trace trace = run.finish();
  const Correlations correlations(trace, trace.ranks[0]);
  const auto rows = range_statistics(trace, trace.ranks[0], &correlations);
  const auto device = [&](const char* name) {
    const DeviceTime& time = row(rows, name).device;
    return std::tuple(time.operations, time.work_ns, time.projected_ns);
  };
  EXPECT_EQ(device("forward"), std::tuple(4U, 10 + 30 + 50 + 5, 325 - 200));
  EXPECT_EQ(device("conv1"), std::tuple(3U, 30 + 50 + 5, 30 + (325 - 250)));
  EXPECT_EQ(device("load"), std::tuple(1U, 7, 7));
  EXPECT_EQ(device("cudaLaunchKernel"), std::tuple(6U, 10 + 30 + 50 + 5 + 100 + 7, 10 + 30 + 50 + 5 + 100 + 7));
  EXPECT_EQ(device("cuLaunchKernel"), device("cudaLaunchKernel"));
}

TEST(RangeStatistics, OfSeveralRanksAreJoinedByName) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    main.add_slice(0, 10 + r * 20, "forward");
    if (r == 1) main.add_slice(50, 55, "evaluate");
  }
  const Trace trace = run.finish();
  const auto first = range_statistics(trace, trace.ranks[0], nullptr);
  const auto second = range_statistics(trace, trace.ranks[1], nullptr);
  const auto rows = merged_ranges({&first, &second});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "forward");
  EXPECT_EQ(rows[0].durations.sum_ns(), 40);
  EXPECT_EQ(rows[0].durations.quantile_ns(0.5), 20);
  EXPECT_EQ(rows[1].durations.count(), 1U);
}

// Five names of 100, 200, …, 500 ns, of which two are kept, and a message, which is always kept. "a 1" and "a 3" launch
// a kernel each.
TEST(RangeStatistics, KeepTheLargestOfManyNamesAndSumTheOthers) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    TrackBuilder& main = rank.add_main_thread();
    TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7", 3);
    std::int64_t now = 0;
    for (int i = 1; i <= 5; ++i, now += 1000) {
      main.add_slice(now, now + 100 * i, "a " + std::to_string(i));
      if (i == 2) main.add_slice(now + 300, now + 310, "a 2");
      if (i != 1 && i != 3) continue;
      main.add_slice(now + 1, now + 2, "MPI_Send", "mpi", "point-to-point");
      main.argument("correlation", i);
      stream.add_slice(now + 10, now + 17, "kernel", "cuda", "kernel");
      stream.argument("correlation", i);
    }
    if (r == 1) main.add_slice(now, now + 900, "of rank 1");
  }
  const Trace trace = run.finish();
  const Correlations correlations(trace, trace.ranks[0]);
  const auto first = range_statistics(trace, trace.ranks[0], &correlations, 3);
  const auto names_of = [](const std::vector<RangeStatistics>& rows) {
    std::vector<std::string> names;
    for (const RangeStatistics& range : rows) names.push_back(range.name);
    return names;
  };
  EXPECT_EQ(names_of(first), (std::vector<std::string>{"a 5", "a 4", "MPI_Send", "other names"}));
  const RangeStatistics& others = first.back();
  EXPECT_EQ(others.others, 3U);
  EXPECT_EQ(others.durations.count(), 4U);
  EXPECT_EQ(others.durations.sum_ns(), 100 + 200 + 10 + 300);
  EXPECT_EQ(others.durations.minimum_ns(), 10);
  EXPECT_EQ(others.durations.maximum_ns(), 300);
  EXPECT_EQ(others.device.operations, 2U);
  EXPECT_EQ(others.device.work_ns, 14);
  EXPECT_EQ(names_in(first), 6U);
  for (const RangeStatistics& range : first) EXPECT_EQ(range.others > 0, range.name == "other names");

  const auto second = range_statistics(trace, trace.ranks[1], nullptr, 3);
  EXPECT_EQ(names_of(second), (std::vector<std::string>{"of rank 1", "a 5", "MPI_Send", "other names"}));
  const auto rows = merged_ranges({&first, &second}, 2);
  EXPECT_EQ(names_of(rows), (std::vector<std::string>{"a 5", "of rank 1", "MPI_Send", "other names"}));
  EXPECT_EQ(rows[0].durations.sum_ns(), 1000);
  EXPECT_EQ(rows[2].durations.count(), 4U);
  EXPECT_EQ(rows.back().others, 5U);  // the four of rank 1, and a 4 of rank 0
  EXPECT_EQ(rows.back().durations.sum_ns(), 2 * (100 + 200 + 10 + 300 + 400));
}

TEST(RangeStatistics, AreAlikeWhereTheTraceHasMoreNamesThanTheRank) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    for (int i = 0; i < 4; ++i) main.add_slice(100 * i, 100 * i + 10 + i, std::to_string(r) + " " + std::to_string(i));
  }
  const Trace trace = run.finish();
  const auto all = range_statistics(trace, trace.ranks[1], nullptr);
  const auto limited = range_statistics(trace, trace.ranks[1], nullptr, 4);
  ASSERT_EQ(all.size(), 4U);
  ASSERT_EQ(limited.size(), 4U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(limited[i].name, all[i].name);
    EXPECT_EQ(limited[i].durations.sum_ns(), all[i].durations.sum_ns());
    EXPECT_EQ(limited[i].others, 0U);
  }
}

TEST(Labels, AreOneShortLineWithoutControlCharacters) {
  EXPECT_EQ(label("forward", 7), "forward");
  EXPECT_EQ(label("a\x1b[31m\nb", 20), "a�[31m�b");
  EXPECT_EQ(label("tr\xC3\xA4ge\xFF", 20), "träge�");
  EXPECT_EQ(label("\xE2\x80\xAEx", 20), "�x");
  EXPECT_EQ(label("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(label("äöüäöüäöü", 4), "äö…ü");
  EXPECT_EQ(label("", 5), "");
}

}  // namespace
}  // namespace paceline::analysis
