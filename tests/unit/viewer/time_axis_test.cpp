// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/time_axis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace {

TimeAxis axis(double begin, double end, int width, TimeRange view) {
  TimeAxis made(begin, end);
  made.set_width(width);
  made.show(view);
  return made;
}

struct Mapping {
  TimeRange view;
  int width;
  double time_ns, x;
};

class TimeAxisMapping : public testing::TestWithParam<Mapping> {};

TEST_P(TimeAxisMapping, GoesBothWays) {
  const Mapping& row = GetParam();
  const TimeAxis made = axis(0, 1e12, row.width, row.view);
  EXPECT_DOUBLE_EQ(made.x_of(row.time_ns), row.x);
  EXPECT_DOUBLE_EQ(made.time_at(row.x), row.time_ns);
}

INSTANTIATE_TEST_SUITE_P(Rows, TimeAxisMapping,
                         testing::Values(Mapping{{0, 1e12}, 1000, 0, 0}, Mapping{{0, 1e12}, 1000, 1e12, 1000},
                                         Mapping{{0, 1e12}, 1000, 2.5e11, 250}, Mapping{{1e9, 2e9}, 500, 1.5e9, 250},
                                         Mapping{{1e9, 2e9}, 500, 0.9e9, -50},
                                         Mapping{{5e11, 5e11 + 1000}, 2000, 5e11 + 400, 800}));

TEST(TimeAxis, ZoomKeepsTheTimeUnderThePointer) {
  for (const double x : {0.0, 1.0, 333.0, 999.0}) {
    for (const double factor : {0.9, 0.5, 0.1, 1.7}) {
      TimeAxis made = axis(0, 3.6e12, 1000, {1e12, 2e12});
      const double before = made.time_at(x);
      made.zoom(x, factor);
      EXPECT_NEAR(made.time_at(x), before, 1e-3) << "x " << x << ", factor " << factor;
      EXPECT_NEAR(made.visible().length(), 1e12 * factor, 1e-3);
    }
  }
}

TEST(TimeAxis, ZoomInAndOutAgainComesBackToTheSameView) {
  TimeAxis made = axis(0, 3.6e12, 1357, {1.2e12, 1.3e12});
  const TimeRange before = made.visible();
  for (int i = 0; i < 10; ++i) made.zoom(400, 0.5);
  for (int i = 0; i < 10; ++i) made.zoom(400, 2);
  EXPECT_NEAR(made.visible().begin_ns, before.begin_ns, 0.01);
  EXPECT_NEAR(made.visible().end_ns, before.end_ns, 0.01);
}

TEST(TimeAxis, StaysWithinTheRun) {
  TimeAxis made = axis(0, 1e9, 1000, {0, 1e8});
  made.pan(-50);
  EXPECT_EQ(made.visible(), (TimeRange{0, 1e8}));
  made.pan(1e6);
  EXPECT_EQ(made.visible(), (TimeRange{9e8, 1e9}));
  made.zoom(500, 1000);
  EXPECT_EQ(made.visible(), made.whole());
}

TEST(TimeAxis, DoesNotZoomInFurtherThanItsLimit) {
  TimeAxis made = axis(0, 1e9, 1000, {0, 1e9});
  for (int i = 0; i < 100; ++i) made.zoom(500, 0.5);
  EXPECT_NEAR(made.visible().length(), TimeAxis::shortest_view_ns, 1e-6);
}

TEST(TimeAxis, PanMovesByWholeColumns) {
  TimeAxis made = axis(0, 1e9, 1000, {1e8, 2e8});
  made.pan(100);
  EXPECT_DOUBLE_EQ(made.visible().begin_ns, 1.1e8);
  EXPECT_DOUBLE_EQ(made.visible().length(), 1e8);
}

TEST(TimeAxis, ARunWithoutLengthCanStillBeShown) {
  TimeAxis made(5, 5);
  made.set_width(100);
  EXPECT_GT(made.ns_per_pixel(), 0);
}

TEST(TimeAxis, TicksAreRoundAndFarEnoughApart) {
  for (const double length : {300.0, 1.7e3, 9.9e5, 3.3e7, 6.1e9, 2.4e12}) {
    const TimeAxis made = axis(0, 4e12, 1200, {1e6, 1e6 + length});
    const double step = made.tick_step(80);
    EXPECT_GE(step / made.ns_per_pixel(), 80 * 0.999);
    EXPECT_LE(step / made.ns_per_pixel(), 80 * 2.51);
    const double mantissa = step / std::pow(10, std::floor(std::log10(step) + 1e-9));
    EXPECT_TRUE(std::abs(mantissa - 1) < 1e-9 || std::abs(mantissa - 2) < 1e-9 || std::abs(mantissa - 5) < 1e-9)
        << step;
    for (const Tick& tick : made.ticks(step)) {
      EXPECT_GE(tick.x, -1e-6);
      EXPECT_LE(tick.x, 1200 + 1e-6);
      EXPECT_NEAR(std::remainder(tick.time_ns, step), 0, step * 1e-6);
    }
  }
}

TEST(TimeAxis, TicksOfALongRunAreWholeMinutes) {
  const TimeAxis made = axis(0, 95e12, 1200, {0, 95e12});
  EXPECT_EQ(made.tick_step(80), 7200e9);
}

TEST(TimeText, DurationsHaveFourDigitsAndAUnit) {
  EXPECT_EQ(duration_text(0), "0 ns");
  EXPECT_EQ(duration_text(183), "183 ns");
  EXPECT_EQ(duration_text(12'349), "12.35 µs");
  EXPECT_EQ(duration_text(4'120'000), "4.120 ms");
  EXPECT_EQ(duration_text(123'400'000), "123.4 ms");
  EXPECT_EQ(duration_text(1'250'000'000), "1.250 s");
  EXPECT_EQ(duration_text(1'100'500'000'000), "18 min 20.5 s");
  EXPECT_EQ(duration_text(-12'349), "−12.35 µs");
  EXPECT_EQ(duration_text(3'725'400'000'000), "1 h 2 min 5 s");
  EXPECT_EQ(duration_text(95'000'000'000'000), "26 h 23 min");
}

TEST(TimeText, PointsInTimeHaveTheDigitsThatTheirStepNeeds) {
  EXPECT_EQ(time_text(1.25e9, 1e7, 2e9), "1.25 s");
  EXPECT_EQ(time_text(1.2345678e10, 100, 2e10), "12.3456780 s");
  EXPECT_EQ(time_text(3.5e5, 5e4, 9e5), "350 µs");
  EXPECT_EQ(time_text(-1e-9, 100, 1e3), "0.0 µs");
  EXPECT_EQ(time_text(3.99821e9, 1e4, 4e9), "3.99821 s");
  EXPECT_EQ(time_text(95e12, 3e11, 95e12), "26 h 23 min");
  EXPECT_EQ(time_text(-1800e9, 3e11, 95e12), "−0 h 30 min");
  EXPECT_EQ(time_text(-1e9, 3e11, 95e12), "0 h 00 min");
  EXPECT_EQ(time_text(3599.996e9, 1e7, 95e12), "1 h 00 min 00.00 s");
  EXPECT_EQ(time_text(3905.25e9, 1e9, 95e12), "1 h 05 min 05 s");
  EXPECT_EQ(time_text(3905.25e9, 1e7, 95e12), "1 h 05 min 05.25 s");
}

TEST(TimeText, TimesAreReadWithAndWithoutUnit) {
  EXPECT_DOUBLE_EQ(time_from_text("1.5"), 1.5e9);
  EXPECT_DOUBLE_EQ(time_from_text("1.5s"), 1.5e9);
  EXPECT_DOUBLE_EQ(time_from_text(" 20 ms"), 2e7);
  EXPECT_DOUBLE_EQ(time_from_text("7us"), 7e3);
  EXPECT_DOUBLE_EQ(time_from_text("7µs"), 7e3);
  EXPECT_DOUBLE_EQ(time_from_text("1e3ns"), 1e3);
  EXPECT_DOUBLE_EQ(time_from_text("18 min 20.5 s"), 1100.5e9);
  EXPECT_DOUBLE_EQ(time_from_text("1 h 05 min 20 s"), 3920e9);
  EXPECT_DOUBLE_EQ(time_from_text("-2 min"), -120e9);
  EXPECT_DOUBLE_EQ(time_from_text("−5 ms"), -5e6) << "as it is shown";
  EXPECT_EQ(time_text(-0.25e9, 1e7, 1e9), "−0.25 s");
  for (const char* wrong : {"", "s", "1 minute", "1..5", "ten"})
    EXPECT_TRUE(std::isnan(time_from_text(wrong))) << wrong;
}

TEST(TimeText, SmallSharesDoNotVanish) {
  EXPECT_EQ(share_text(0.1234), "12.3 %");
  EXPECT_EQ(share_text(0.0001), "<0.1 %");
  EXPECT_EQ(share_text(0), "0.0 %");
  EXPECT_EQ(count_text(1'234'567), "1,234,567");
  EXPECT_EQ(count_text(999), "999");
}

}  // namespace
}  // namespace paceline::viewer
