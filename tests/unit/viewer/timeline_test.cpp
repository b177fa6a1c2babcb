// SPDX-License-Identifier: Apache-2.0
// The timeline as a user meets it: real events on a real widget, off screen.
#include <gtest/gtest.h>

#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/timeline_fixture.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {
namespace {

TEST_F(TimelineTest, ShowsTheWholeRunAtFirst) {
  EXPECT_EQ(state.time.axis().visible(), state.time.axis().whole());
  EXPECT_EQ(state.time.axis().width(), timeline.viewport()->width() - header);
  EXPECT_EQ(state.time.axis().whole().end_ns, static_cast<double>(run->trace.span_ns()));
}

TEST_F(TimelineTest, WheelZoomsWhereThePointerIs) {
  for (const int x : {header + 100, header + 777}) {
    state.time.show_all();
    turn_wheel({x, 100}, 2);
    const double time = state.time.axis().time_at(x - header);
    const double length = state.time.axis().visible().length();
    turn_wheel({x, 100}, 1);
    EXPECT_NEAR(state.time.axis().time_at(x - header), time, 1e-3);
    EXPECT_LT(state.time.axis().visible().length(), length);
    turn_wheel({x, 100}, -1);
    EXPECT_NEAR(state.time.axis().visible().length(), length, 1);
  }
}

TEST_F(TimelineTest, CtrlWheelZoomsInFinerSteps) {
  turn_wheel({600, 100}, 1, Qt::ControlModifier);
  const double fine = state.time.axis().visible().length();
  state.time.show_all();
  turn_wheel({600, 100}, 1);
  EXPECT_GT(fine, state.time.axis().visible().length());
  EXPECT_LT(fine, state.time.axis().whole().length());
}

TEST_F(TimelineTest, ShiftWheelMovesThroughTimeWithoutZoom) {
  state.time.show_part({1e8, 2e8});
  turn_wheel({600, 100}, -1, Qt::ShiftModifier);
  EXPECT_GT(state.time.axis().visible().begin_ns, 1e8);
  EXPECT_NEAR(state.time.axis().visible().length(), 1e8, 1e-3);
}

// The length of a selected range and the flag of a time stand in the ruler. The rest of "1.170 s" would read as 170 s.
// The edges of the range are lines of a pixel, which may cross a label.
TEST_F(TimelineTest, NoLabelOfTheRulerIsHiddenInPart) {
  const auto ticks =
      ruler_ticks(state.time.axis(), with_size(timeline.font(), 11), header, timeline.viewport()->width());
  ASSERT_GT(ticks.size(), 4u);
  const QImage plain = timeline.viewport()->grab().toImage();
  const QRgb ground = plain.pixel(ticks[2].box.right() + 8, ticks[2].box.top());
  std::size_t hidden = 0, whole = 0;
  for (int shift = -60; shift <= 60; shift += 6) {
    const double middle = state.time.axis().time_at(ticks[2].box.center().x() - header + shift),
                 half = state.time.axis().visible().length() / 20;
    state.selection.select_range(TimeRange{middle - half, middle + half}, {0, 1});
    state.time.mark_time(middle);
    const QImage picture = timeline.viewport()->grab().toImage();
    for (const RulerTick& tick : ticks) {
      const auto letters = [&](const QImage& in) {  // columns that have what the plain label has
        int columns = 0;
        for (int x = tick.box.left(); x <= tick.box.right(); ++x) {
          bool there = false;
          for (int y = tick.box.top(); y <= tick.box.bottom(); ++y) {
            there |= plain.pixel(x, y) != ground && in.pixel(x, y) == plain.pixel(x, y);
          }
          columns += there ? 1 : 0;
        }
        return columns;
      };
      const int all = letters(plain), left = letters(picture);
      ASSERT_GT(all, 4);
      EXPECT_TRUE(left == 0 || left >= all - 2) << left << " of " << all << " columns of " << tick.label.toStdString();
      ++(left == 0 ? hidden : whole);
    }
  }
  EXPECT_GT(hidden, 0u);
  EXPECT_GT(whole, hidden);
}

TEST_F(TimelineTest, WheelOverTheNamesScrollsTheRows) {
  timeline.resize(1400, 160);
  QCoreApplication::processEvents();
  turn_wheel({50, 100}, -1);
  EXPECT_GT(timeline.verticalScrollBar()->value(), 0);
  EXPECT_EQ(state.time.axis().visible(), state.time.axis().whole());
}

TEST_F(TimelineTest, DragMovesTheTimeUnderThePointerAlong) {
  state.time.show_part({1e8, 2e8});
  const double time = state.time.axis().time_at(600 - header);
  drag({600, 100}, {440, 100});
  EXPECT_NEAR(state.time.axis().time_at(440 - header), time, 1e-3);
  EXPECT_FALSE(state.selection.slice());
}

TEST_F(TimelineTest, LettersZoomAndMove) {
  state.time.show_part({2e8, 4e8});
  press(Qt::Key_W);
  EXPECT_LT(state.time.axis().visible().length(), 2e8);
  press(Qt::Key_S);
  EXPECT_NEAR(state.time.axis().visible().length(), 2e8, 1);
  const double begin = state.time.axis().visible().begin_ns;
  press(Qt::Key_D);
  EXPECT_GT(state.time.axis().visible().begin_ns, begin);
  press(Qt::Key_A);
  EXPECT_NEAR(state.time.axis().visible().begin_ns, begin, 1);
  press(Qt::Key_F);
  EXPECT_EQ(state.time.axis().visible(), state.time.axis().whole());
  press(Qt::Key_Backspace);
  EXPECT_NEAR(state.time.axis().visible().begin_ns, begin, 1);
}

TEST_F(TimelineTest, AClickSelectsAndAnnouncesTheSlice) {
  QSignalSpy spy(&state.selection, &Selection::slices_changed);
  const SliceRef backward = first_named("backward", 1);
  QTest::mouseClick(timeline.viewport(), Qt::LeftButton, Qt::NoModifier, middle_of(backward));
  EXPECT_EQ(state.selection.slice(), backward);
  EXPECT_EQ(spy.count(), 1);
  EXPECT_TRUE(timeline.accessibleDescription().startsWith("backward, "));
  press(Qt::Key_Escape);
  EXPECT_FALSE(state.selection.slice());
}

TEST_F(TimelineTest, HitsEveryLevelOfNesting) {
  ASSERT_TRUE(state.time.show_iterations(2, 2));
  for (const char* name : {"iteration", "backward", "layer2.0.downsample"}) {
    SliceRef ref = first_named(name);
    const auto& slices = slices_of(*run, ref);
    while (double(slices.start_ns[ref.slice]) < state.time.axis().visible().begin_ns || name_of(ref) != name) {
      ++ref.slice;
    }
    EXPECT_EQ(timeline.slice_at(middle_of(ref)), ref) << name;
  }
  EXPECT_FALSE(timeline.slice_at({10, 100}));
  EXPECT_FALSE(timeline.slice_at({600, 5}));
}

TEST_F(TimelineTest, DoubleClickZoomsToTheSlice) {
  const SliceRef backward = first_named("backward");
  const auto& slices = slices_of(*run, backward);
  QTest::mouseDClick(timeline.viewport(), Qt::LeftButton, Qt::NoModifier, middle_of(backward));
  const auto start = double(slices.start_ns[backward.slice]), length = double(slices.duration_ns[backward.slice]);
  EXPECT_NEAR(state.time.axis().visible().begin_ns, start - length / 4, 1);
  EXPECT_NEAR(state.time.axis().visible().length(), 1.5 * length, 1);
}

TEST_F(TimelineTest, ShiftDragMeasures) {
  state.time.show_part({1e8, 2e8});
  drag({header + 100, 20}, {header + 500, 20}, Qt::ShiftModifier);
  ASSERT_TRUE(state.selection.range());
  EXPECT_NEAR(state.selection.range()->begin_ns, state.time.axis().time_at(100), 1);
  EXPECT_NEAR(state.selection.range()->end_ns, state.time.axis().time_at(500), 1);
  press(Qt::Key_Z);
  EXPECT_EQ(state.time.axis().visible(), *state.selection.range());
}

TEST_F(TimelineTest, ArrowsWalkFromSliceToSlice) {
  state.selection.reveal(first_named("forward"));
  press(Qt::Key_Right);
  EXPECT_EQ(name_of(*state.selection.slice()), "backward");
  press(Qt::Key_Left);
  EXPECT_EQ(name_of(*state.selection.slice()), "forward");
  press(Qt::Key_Down);
  EXPECT_EQ(name_of(*state.selection.slice()), "conv1");
  press(Qt::Key_Up);
  press(Qt::Key_Up);
  EXPECT_EQ(name_of(*state.selection.slice()), "iteration");
}

TEST_F(TimelineTest, AKeyboardAloneReachesASlice) {
  press(Qt::Key_Right);
  ASSERT_TRUE(state.selection.slice());
  EXPECT_EQ(slices_of(*run, *state.selection.slice()).depth[state.selection.slice()->slice], 0);
}

TEST_F(TimelineTest, BracketsStepThroughIterations) {
  ASSERT_TRUE(state.time.show_iterations(4, 4));
  press(Qt::Key_BracketRight);
  const auto& next = run->index->iterations(0)[5];
  EXPECT_LT(state.time.axis().visible().begin_ns, double(next.start_ns));
  EXPECT_GT(state.time.axis().visible().end_ns, double(next.start_ns + next.duration_ns));
  EXPECT_LT(state.time.axis().visible().length(), 1.1 * double(next.duration_ns));
  EXPECT_FALSE(state.time.show_iterations(1000, 2000));
  EXPECT_EQ(state.time.range_of_iterations(5, 5),
            (TimeRange{double(next.start_ns), double(next.start_ns + next.duration_ns)}));
  EXPECT_FALSE(state.time.range_of_iterations(1000, 2000));
}

TEST_F(TimelineTest, ClickOnARanksNameFoldsItsTracks) {
  const int height = timeline.rows().height();
  QTest::mouseClick(timeline.viewport(), Qt::LeftButton, Qt::NoModifier,
                    {60, ruler + timeline.rows().rows_of(0).front().y + 5});
  EXPECT_TRUE(state.arrangement.collapsed(0));
  EXPECT_FALSE(state.arrangement.collapsed(1));
  EXPECT_LT(timeline.rows().height(), height);
  const SliceRef forward = first_named("forward", 0);
  EXPECT_EQ(timeline.rows().row_of(forward), nullptr);
  state.selection.reveal(forward);
  EXPECT_FALSE(state.arrangement.collapsed(0));
  EXPECT_NE(timeline.rows().row_of(forward), nullptr);
}

TEST_F(TimelineTest, PhasesHaveTheirColoursWhereTheyAre) {
  ASSERT_TRUE(state.time.show_iterations(3, 3));
  const QImage picture = timeline.viewport()->grab().toImage();
  const Theme theme = Theme::light();
  int checked = 0;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const PlacedRow& strip = timeline.rows().rows_of(rank).front();
    for (const auto& interval : run->ranks[rank].phases->intervals(0, run->trace.ranks[rank].end_ns)) {
      const double from = state.time.axis().x_of(double(interval.start_ns));
      const double to = state.time.axis().x_of(double(interval.end_ns));
      if (from < 0 || to > state.time.axis().width() || to - from < 6) continue;
      // Below the labels, in the middle and near both ends.
      for (const double x : {from + 2, (from + to) / 2, to - 2}) {
        // Communication begins with waiting, which is pale.
        if (interval.phase == analysis::Phase::communication && x != to - 2) continue;
        const QPoint at(header + static_cast<int>(x), ruler + strip.end_y - 2);
        EXPECT_EQ(picture.pixelColor(at).rgb(), phase_colour(interval.phase, theme)) << "rank " << rank << " at " << x;
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 8);
}

TEST(TimelinePicture, DrawingAMillionSlicesIsBoundedByThePixels) {
  analysis::TraceBuilder builder;
  auto& track = builder.add_rank(0).add_main_thread();
  constexpr std::size_t count = 1'000'000;
  for (std::size_t i = 0; i < count / 4; ++i) {
    const auto start = static_cast<std::int64_t>(i * 4000);
    track.add_slice(start, start + 3900, "step", "app", "");
    track.add_slice(start, start + 1000, "forward", "paceline.trainer", "forward");
    track.add_slice(start + 1000, start + 3000, "backward", "paceline.trainer", "backward");
    track.add_slice(start + 1100, start + 1500, "layer", "app", "");
  }
  const auto run = index_run("many", builder.finish());
  ASSERT_EQ(run->slices, count);
  Document document(run);
  ViewState state(*run);
  TimelineWidget timeline(document, state);
  timeline.resize(1200, 300);
  timeline.show();
  timeline.grab();
  EXPECT_FALSE(document.background().idle()) << "the index of a million slices is made beside the UI thread";
  EXPECT_FALSE(timeline.slice_at({600, ruler + timeline.rows().rows_of(0)[1].y + 5})) << "not yet";
  document.background().finish();
  EXPECT_TRUE(timeline.slice_at({600, ruler + timeline.rows().rows_of(0)[1].y + 5}));
  const auto columns = static_cast<std::size_t>(state.time.axis().width());
  for (const double share : {1.0, 0.3, 0.01, 0.0001}) {
    const double middle = state.time.axis().whole().length() / 2;
    state.time.show_part({middle, middle + share * state.time.axis().whole().length()});
    timeline.grab();
    // Slices of three pixels and more on three levels, one call for the rest of each level, the intervals in the strip,
    // and the ruler.
    EXPECT_LE(timeline.draw_counts().rectangles, columns / 3 * 3 + columns / 2 + 100) << share;
    EXPECT_LE(timeline.draw_counts().labels, columns / 20 * 4) << share;
    EXPECT_GE(timeline.draw_counts().rectangles, 4u) << share;
  }
}

TEST(TimelinePicture, HoveringDoesNotRedrawTheRows) {
  const auto run = index_run("simulated", simulate({.ranks = 1, .iterations = 5}));
  Document document(run);
  ViewState state(*run);
  TimelineWidget timeline(document, state);
  timeline.resize(900, 300);
  timeline.show();
  timeline.grab();
  const std::size_t drawn = timeline.draw_counts().rectangles;
  QTest::mouseMove(timeline.viewport(), {500, 100});
  const QImage before = timeline.viewport()->grab().toImage();
  EXPECT_EQ(timeline.draw_counts().rectangles, drawn);
  EXPECT_FALSE(before.isNull());
}

TEST(Labels, AreElidedToTheirBoxAndOmittedIfTooShort) {
  QImage image(200, 20, QImage::Format_RGB32);
  for (const int width : {10, 20, 30, 60, 200}) {
    image.fill(Qt::white);
    QPainter painter(&image);
    const bool drawn = paint_label(painter, QRect(0, 0, width, 20), "communication", 0xffffffff);
    painter.end();
    EXPECT_EQ(drawn, width >= 60) << width;
    bool ink_inside = false;
    for (int y = 0; y < 20; ++y) {
      for (int x = 0; x < 200; ++x) {
        const bool ink = image.pixelColor(x, y).lightness() < 200;
        ink_inside |= ink;
        EXPECT_FALSE(ink && x >= width) << "outside the box of " << width;
      }
    }
    EXPECT_EQ(ink_inside, drawn) << width;
  }
}

TEST(Palette, KeepsPhasesApartAndNamesStable) {
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    for (const analysis::Phase a : phase_order) {
      for (const analysis::Phase b : phase_order) {
        if (a == b) continue;
        const QColor x(phase_colour(a, theme)), y(phase_colour(b, theme));
        const int distance =
            std::abs(x.red() - y.red()) + std::abs(x.green() - y.green()) + std::abs(x.blue() - y.blue());
        EXPECT_GE(distance, 60) << analysis::phase_name(a) << " and " << analysis::phase_name(b);
      }
    }
  }
  EXPECT_EQ(text_colour_on(0xff000000), 0xffffffff);
  EXPECT_EQ(text_colour_on(0xffffffff), 0xff15191f);
}

}  // namespace
}  // namespace paceline::viewer
