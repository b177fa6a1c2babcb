// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Samples samples(const char* unit, bool is_sum, std::vector<std::int64_t> times, std::vector<double> values) {
  Samples made;
  made.unit = unit;
  made.is_sum = is_sum;
  made.time_ns = std::move(times);
  made.value = std::move(values);
  return made;
}

TEST(CounterCurve, OfALevelIsTheLevel) {
  const CounterCurve curve = curve_of(samples("MHz", false, {5, 9}, {1980, 1410}));
  EXPECT_EQ(curve.unit, "MHz");
  EXPECT_THAT(curve.time_ns, ElementsAre(5, 9));
  EXPECT_THAT(curve.value, ElementsAre(1980, 1410));
}

TEST(CounterCurve, OfASumIsWhatItRosePerSecond) {
  // 100 bytes in 50 ms, nothing in 50 ms, then it was set back.
  const CounterCurve curve =
      curve_of(samples("bytes", true, {0, 50'000'000, 100'000'000, 150'000'000}, {0, 100, 100, 40}));
  EXPECT_EQ(curve.unit, "bytes/s");
  EXPECT_THAT(curve.time_ns, ElementsAre(0, 50'000'000, 100'000'000, 150'000'000));
  EXPECT_THAT(curve.value, ElementsAre(2000, 0, 0, 0));
}

TEST(CounterCurve, OfTimesIsPerCentOfOneCpu) {
  // 75 ms of CPU time in 50 ms.
  const CounterCurve curve = curve_of(samples("µs", true, {0, 50'000'000}, {0, 75'000}));
  EXPECT_EQ(curve.unit, "%");
  EXPECT_THAT(curve.value, ElementsAre(::testing::DoubleNear(150, 1e-9), ::testing::DoubleNear(150, 1e-9)));
}

TEST(CounterCurve, NeedsTwoMomentsForASum) {
  EXPECT_THAT(curve_of(samples("", true, {7}, {3})).value, IsEmpty());
  EXPECT_THAT(curve_of(samples("", true, {7, 7}, {3, 4})).value, IsEmpty());
  EXPECT_THAT(curve_of(samples("", true, {}, {})).value, IsEmpty());
}

TEST(FindCounter, KnowsNameAndDevice) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.add_counter("power", "mW", "GPU 0", false).add_sample(1, 10);
  rank.add_counter("power", "mW", "GPU 1", false).add_sample(1, 11);
  const Trace trace = run.finish();
  EXPECT_THAT(find_counter(trace.ranks[0], "power", "GPU 1")->value, ElementsAre(11));
  EXPECT_EQ(find_counter(trace.ranks[0], "power"), nullptr);
}

}  // namespace
}  // namespace paceline::analysis
