// The timeline as a user meets it: real events on a real widget, off screen.
#include <gtest/gtest.h>

#include <set>

#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>
#include <cmath>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/simulated_run.h"
#include "viewer/drawing/time_text.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {
namespace {

constexpr int header = header_width, ruler = ruler_height;

class TimelineTest : public testing::Test {
 protected:
  explicit TimelineTest(SimulatedRun what = {.ranks = 2, .iterations = 10, .epochs = 1, .layers = true})
      : run(index_run("simulated", simulate(what))), timeline(run) {
    timeline.resize(1400, 500);
    timeline.show();
    QCoreApplication::processEvents();
  }

  void turn_wheel(QPoint at, int steps, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWheelEvent event(at, timeline.viewport()->mapToGlobal(QPointF(at)), {}, {0, 120 * steps}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(timeline.viewport(), &event);
  }
  void drag(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::mousePress(timeline.viewport(), Qt::LeftButton, modifiers, from);
    for (const int share : {1, 2, 3, 4}) {
      QMouseEvent move(QEvent::MouseMove, QPointF(from + (to - from) * share / 4),
                       timeline.viewport()->mapToGlobal(QPointF(to)), Qt::NoButton, Qt::LeftButton, modifiers);
      QCoreApplication::sendEvent(timeline.viewport(), &move);
    }
    QTest::mouseRelease(timeline.viewport(), Qt::LeftButton, modifiers, to);
  }
  void press(Qt::Key key) { QTest::keyClick(&timeline, key); }

  SliceRef first_named(const char* name, std::size_t rank = 0) const {
    const auto id = run->trace.names.find(name);
    for (std::size_t track = 0; track < run->trace.ranks[rank].tracks.size(); ++track) {
      const auto& slices = run->trace.ranks[rank].tracks[track].slices;
      for (std::uint32_t i = 0; i < slices.size(); ++i) {
        if (run->trace.kind_of(slices, i).name == id) return {rank, track, i, false};
      }
    }
    throw std::runtime_error(std::string("no slice ") + name);
  }
  std::string name_of(const SliceRef& ref) const { return run->trace.name_of(slices_of(*run, ref), ref.slice); }
  // The middle of a slice on screen, which has to be in view.
  QPoint middle_of(const SliceRef& ref) const {
    const auto& slices = slices_of(*run, ref);
    const double time = (double(slices.start_ns[ref.slice]) + double(slices.end_ns(ref.slice))) / 2;
    const TrackRows* rows = timeline.rows().rows_of(ref.rank, ref.track);
    return {header + static_cast<int>(timeline.axis().x_of(time)),
            ruler - timeline.scroll_y() + rows->depth_y(slices.depth[ref.slice]) + rows->depth_height / 2};
  }

  std::shared_ptr<const viewer::Run> run;
  TimelineWidget timeline;
};

TEST_F(TimelineTest, ShowsTheWholeRunAtFirst) {
  EXPECT_EQ(timeline.axis().visible(), timeline.axis().whole());
  EXPECT_EQ(timeline.axis().width(), timeline.viewport()->width() - header);
  EXPECT_EQ(timeline.axis().whole().end_ns, static_cast<double>(run->trace.span_ns()));
}

TEST_F(TimelineTest, WheelZoomsWhereThePointerIs) {
  for (const int x : {header + 100, header + 777}) {
    timeline.show_all();
    turn_wheel({x, 100}, 2);
    const double time = timeline.axis().time_at(x - header);
    const double length = timeline.axis().visible().length();
    turn_wheel({x, 100}, 1);
    EXPECT_NEAR(timeline.axis().time_at(x - header), time, 1e-3);
    EXPECT_LT(timeline.axis().visible().length(), length);
    turn_wheel({x, 100}, -1);
    EXPECT_NEAR(timeline.axis().visible().length(), length, 1);
  }
}

TEST_F(TimelineTest, CtrlWheelZoomsInFinerSteps) {
  turn_wheel({600, 100}, 1, Qt::ControlModifier);
  const double fine = timeline.axis().visible().length();
  timeline.show_all();
  turn_wheel({600, 100}, 1);
  EXPECT_GT(fine, timeline.axis().visible().length());
  EXPECT_LT(fine, timeline.axis().whole().length());
}

TEST_F(TimelineTest, ShiftWheelMovesThroughTimeWithoutZoom) {
  timeline.show_part({1e8, 2e8});
  turn_wheel({600, 100}, -1, Qt::ShiftModifier);
  EXPECT_GT(timeline.axis().visible().begin_ns, 1e8);
  EXPECT_NEAR(timeline.axis().visible().length(), 1e8, 1e-3);
}

TEST_F(TimelineTest, WheelOverTheNamesScrollsTheRows) {
  timeline.resize(1400, 160);
  QCoreApplication::processEvents();
  turn_wheel({50, 100}, -1);
  EXPECT_GT(timeline.verticalScrollBar()->value(), 0);
  EXPECT_EQ(timeline.axis().visible(), timeline.axis().whole());
}

TEST_F(TimelineTest, DragMovesTheTimeUnderThePointerAlong) {
  timeline.show_part({1e8, 2e8});
  const double time = timeline.axis().time_at(600 - header);
  drag({600, 100}, {440, 100});
  EXPECT_NEAR(timeline.axis().time_at(440 - header), time, 1e-3);
  EXPECT_FALSE(timeline.selected());
}

TEST_F(TimelineTest, LettersZoomAndMove) {
  timeline.show_part({2e8, 4e8});
  press(Qt::Key_W);
  EXPECT_LT(timeline.axis().visible().length(), 2e8);
  press(Qt::Key_S);
  EXPECT_NEAR(timeline.axis().visible().length(), 2e8, 1);
  const double begin = timeline.axis().visible().begin_ns;
  press(Qt::Key_D);
  EXPECT_GT(timeline.axis().visible().begin_ns, begin);
  press(Qt::Key_A);
  EXPECT_NEAR(timeline.axis().visible().begin_ns, begin, 1);
  press(Qt::Key_F);
  EXPECT_EQ(timeline.axis().visible(), timeline.axis().whole());
  press(Qt::Key_Backspace);
  EXPECT_NEAR(timeline.axis().visible().begin_ns, begin, 1);
}

TEST_F(TimelineTest, ClickSelectsWhatIsThereAndTellsSo) {
  QSignalSpy spy(&timeline, &TimelineWidget::selection_changed);
  const SliceRef backward = first_named("backward", 1);
  QTest::mouseClick(timeline.viewport(), Qt::LeftButton, Qt::NoModifier, middle_of(backward));
  EXPECT_EQ(timeline.selected(), backward);
  EXPECT_EQ(spy.count(), 1);
  EXPECT_TRUE(timeline.accessibleDescription().startsWith("backward, "));
  press(Qt::Key_Escape);
  EXPECT_FALSE(timeline.selected());
}

TEST_F(TimelineTest, HitsEveryLevelOfNesting) {
  ASSERT_TRUE(timeline.show_iterations(2, 2));
  for (const char* name : {"iteration", "backward", "layer2.0.downsample"}) {
    SliceRef ref = first_named(name);
    const auto& slices = slices_of(*run, ref);
    while (double(slices.start_ns[ref.slice]) < timeline.axis().visible().begin_ns || name_of(ref) != name) {
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
  EXPECT_NEAR(timeline.axis().visible().begin_ns, start - length / 4, 1);
  EXPECT_NEAR(timeline.axis().visible().length(), 1.5 * length, 1);
}

TEST_F(TimelineTest, ShiftDragMeasures) {
  timeline.show_part({1e8, 2e8});
  drag({header + 100, 80}, {header + 500, 80}, Qt::ShiftModifier);
  ASSERT_TRUE(timeline.selected_range());
  EXPECT_NEAR(timeline.selected_range()->begin_ns, timeline.axis().time_at(100), 1);
  EXPECT_NEAR(timeline.selected_range()->end_ns, timeline.axis().time_at(500), 1);
  press(Qt::Key_Z);
  EXPECT_EQ(timeline.axis().visible(), *timeline.selected_range());
}

TEST_F(TimelineTest, ArrowsWalkFromSliceToSlice) {
  timeline.reveal(first_named("forward"));
  press(Qt::Key_Right);
  EXPECT_EQ(name_of(*timeline.selected()), "backward");
  press(Qt::Key_Left);
  EXPECT_EQ(name_of(*timeline.selected()), "forward");
  press(Qt::Key_Down);
  EXPECT_EQ(name_of(*timeline.selected()), "conv1");
  press(Qt::Key_Up);
  press(Qt::Key_Up);
  EXPECT_EQ(name_of(*timeline.selected()), "iteration");
}

TEST_F(TimelineTest, AKeyboardAloneReachesASlice) {
  press(Qt::Key_Right);
  ASSERT_TRUE(timeline.selected());
  EXPECT_EQ(slices_of(*run, *timeline.selected()).depth[timeline.selected()->slice], 0);
}

TEST_F(TimelineTest, BracketsStepThroughIterations) {
  ASSERT_TRUE(timeline.show_iterations(4, 4));
  press(Qt::Key_BracketRight);
  const auto& next = run->ranks[0].iterations[5];
  EXPECT_LT(timeline.axis().visible().begin_ns, double(next.start_ns));
  EXPECT_GT(timeline.axis().visible().end_ns, double(next.start_ns + next.duration_ns));
  EXPECT_LT(timeline.axis().visible().length(), 1.1 * double(next.duration_ns));
  EXPECT_FALSE(timeline.show_iterations(1000, 2000));
}

TEST_F(TimelineTest, ClickOnARanksNameFoldsItsTracks) {
  const int height = timeline.rows().height();
  QTest::mouseClick(timeline.viewport(), Qt::LeftButton, Qt::NoModifier,
                    {60, ruler + timeline.rows().ranks()[0].strip_y() + 5});
  EXPECT_TRUE(timeline.rows().collapsed(0));
  EXPECT_FALSE(timeline.rows().collapsed(1));
  EXPECT_LT(timeline.rows().height(), height);
  EXPECT_EQ(timeline.rows().rows_of(0, 0), nullptr);
  timeline.reveal(first_named("forward", 0));
  EXPECT_FALSE(timeline.rows().collapsed(0));
}

TEST_F(TimelineTest, PhasesHaveTheirColoursWhereTheyAre) {
  ASSERT_TRUE(timeline.show_iterations(3, 3));
  const QImage picture = timeline.viewport()->grab().toImage();
  const Theme theme = Theme::light();
  int checked = 0;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const RankRows& rows = timeline.rows().ranks()[rank];
    for (const auto& interval : run->ranks[rank].phases.intervals) {
      const double from = timeline.axis().x_of(double(interval.start_ns));
      const double to = timeline.axis().x_of(double(interval.end_ns));
      if (from < 0 || to > timeline.axis().width() || to - from < 6) continue;
      // Below the labels, in the middle and near both ends.
      for (const double x : {from + 2, (from + to) / 2, to - 2}) {
        const QPoint at(header + static_cast<int>(x), ruler + rows.strip_end_y() - 2);
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
  ASSERT_EQ(run->slices(), count);
  TimelineWidget timeline(run);
  timeline.resize(1200, 300);
  timeline.show();
  const auto columns = static_cast<std::size_t>(timeline.axis().width());
  for (const double share : {1.0, 0.3, 0.01, 0.0001}) {
    const double middle = timeline.axis().whole().length() / 2;
    timeline.show_part({middle, middle + share * timeline.axis().whole().length()});
    timeline.grab();
    // Slices of three pixels and more on three levels, one call a level for the rest, intervals in the strip, the
    // ruler.
    EXPECT_LE(timeline.draw_counts().rectangles, columns / 3 * 3 + columns / 2 + 100) << share;
    EXPECT_LE(timeline.draw_counts().labels, columns / 20 * 4) << share;
    EXPECT_GE(timeline.draw_counts().rectangles, 4u) << share;
  }
}

TEST(TimelinePicture, AHoverDoesNotDrawTheRowsAnew) {
  const auto run = index_run("simulated", simulate({.ranks = 1, .iterations = 5}));
  TimelineWidget timeline(run);
  timeline.resize(900, 300);
  timeline.show();
  timeline.grab();
  const std::size_t drawn = timeline.draw_counts().rectangles;
  QTest::mouseMove(timeline.viewport(), {500, 100});
  const QImage before = timeline.viewport()->grab().toImage();
  EXPECT_EQ(timeline.draw_counts().rectangles, drawn);
  EXPECT_FALSE(before.isNull());
}

// A second of a rank: its CPU time, 0, 40 and 100 % in thirds, memory, and errors that never came.
std::shared_ptr<const viewer::Run> run_with_counters() {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.info().start_ns = 0;
  rank.info().end_ns = 900'000'000;
  rank.add_main_thread().add_slice(0, 900'000'000, "step");
  analysis::TrackBuilder& cpu = rank.add_counter("CPU time", "µs", "", true);
  double used = 0;
  for (int sample = 0; sample <= 900; ++sample) {
    cpu.add_sample(sample * 1'000'000, used);
    used += sample < 300 ? 0 : sample < 600 ? 400 : 1000;
  }
  analysis::TrackBuilder& memory = rank.add_counter("memory", "bytes", "", false);
  memory.add_sample(0, 1e6);
  memory.add_sample(450'000'000, 3e6);
  memory.add_sample(900'000'000, 3e6);
  rank.add_counter("errors", "", "", true).add_sample(0, 5);
  return index_run("counters", builder.finish());
}

TEST(Counters, HaveRowsThatUnfoldFromTheFirst) {
  const auto run = run_with_counters();
  TimelineWidget timeline(run);
  timeline.resize(1100, 400);
  timeline.show();
  const auto& tracks = timeline.rows().ranks()[0].tracks;
  ASSERT_EQ(tracks.size(), 2u) << "the thread and CPU time";
  const TrackRows first = tracks[1];
  EXPECT_TRUE(first.counter && first.folds);
  const int height = timeline.rows().height();
  QTest::mouseClick(timeline.viewport(), Qt::LeftButton, {}, {60, ruler + first.y + first.depth_height / 2});
  ASSERT_EQ(tracks.size(), 3u) << "memory; what was never above 0 has no row";
  EXPECT_EQ(run->trace.ranks[0].tracks[tracks[2].track].label, "memory");
  EXPECT_GT(timeline.rows().height(), height);
  timeline.set_counters_unfolded(false);
  EXPECT_EQ(timeline.rows().height(), height);
}

// How high the graph stands at this share of the width, as a share of the row.
double drawn_height(const QImage& image, const TrackRows& row, double share) {
  const int x = header + static_cast<int>(share * (image.width() - header));
  const QRgb background = Theme::light().background;
  for (int y = row.y; y < row.y + row.depth_height - 1; ++y) {
    if (image.pixel(x, ruler + y) != background) {
      return static_cast<double>(row.y + row.depth_height - 1 - y) / (row.depth_height - 1);
    }
  }
  return 0;
}

TEST(Counters, AreDrawnAsHighAsTheyAre) {
  const auto run = run_with_counters();
  RowLayout rows(*run);
  rows.set_counters_unfolded(0, true);
  TimeAxis axis(0, 900'000'000);
  axis.set_width(700);
  TimelinePainter painter(*run, Theme::light(), QFont());
  QImage image(header + 700, 300, QImage::Format_RGB32);
  QPainter to(&image);
  painter.paint(to, image.size(), axis, rows, 0, std::nullopt);
  to.end();
  const TrackRows &cpu = rows.ranks()[0].tracks[1], &memory = rows.ranks()[0].tracks[2];
  const double pixel = 1.0 / (cpu.depth_height - 1);
  EXPECT_NEAR(drawn_height(image, cpu, 0.15), 0, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, cpu, 0.52), 0.4, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, cpu, 0.85), 1, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, memory, 0.27), 1.0 / 3, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, memory, 0.73), 1, 1.6 * pixel);
}

TEST(Counters, TellTheLeastAndTheGreatestOfAStretch) {
  const auto run = run_with_counters();
  const CounterGraph& cpu = run->ranks[0].graphs[1];
  EXPECT_EQ(cpu.curve.unit, "%");
  EXPECT_NEAR(cpu.top, 100, 1e-9);
  const auto middle = cpu.between(310e6, 590e6), edge = cpu.between(299.5e6, 600.5e6);
  ASSERT_TRUE(middle && edge);
  EXPECT_NEAR(middle->low, 40, 1e-9);
  EXPECT_NEAR(middle->high, 40, 1e-9);
  EXPECT_NEAR(edge->low, 0, 1e-9);
  EXPECT_NEAR(edge->high, 100, 1e-9);
  EXPECT_FALSE(cpu.between(-2e6, -1e6));
  EXPECT_FALSE(cpu.between(901e6, 902e6));
}

TEST(Counters, SayValueAndUnitUnderThePointer) {
  const auto run = run_with_counters();
  TimelineWidget timeline(run);
  timeline.resize(header + 900, 400);
  timeline.show();
  const TrackRows& cpu = timeline.rows().ranks()[0].tracks[1];
  const int left = header + timeline.axis().width() * 45 / 90;
  EXPECT_EQ(timeline.value_at({left, ruler + cpu.y + 5}), "40 %");
  EXPECT_EQ(timeline.value_at({left, ruler + 2}), "") << "the strip of phases";
}

TEST(Losses, AreHatchedInGreyAndNotGivenToAPhase) {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.info().end_ns = 1000;
  analysis::TrackBuilder& main = rank.add_main_thread();
  main.add_slice(800, 1000, "iteration", "paceline.trainer", "iteration");
  main.add_lost(200, 600, 12'345);
  const auto run = index_run("lost", builder.finish());
  RowLayout rows(*run);
  TimeAxis axis(0, 1000);
  axis.set_width(1000);
  TimelinePainter painter(*run, Theme::light(), QFont());
  QImage image(header + 1000, 200, QImage::Format_RGB32);
  QPainter to(&image);
  painter.paint(to, image.size(), axis, rows, 0, std::nullopt);
  to.end();
  const Theme theme = Theme::light();
  const int top = ruler + rows.ranks()[0].strip_y(), bottom = top + rows.ranks()[0].strip_height;
  const auto colours = [&](int from, int until) {
    std::set<QRgb> seen;
    for (int x = header + from; x < header + until; ++x) {
      for (int y = top; y < bottom; ++y) seen.insert(image.pixel(x, y) | 0xff000000);
    }
    return seen;
  };
  EXPECT_EQ(colours(150, 199).count(phase_colour(analysis::Phase::startup, theme)), 1u);
  EXPECT_EQ(colours(400, 600), (std::set<QRgb>{theme.background, theme.faint_text}));
  EXPECT_EQ(colours(202, 599).count(phase_colour(analysis::Phase::startup, theme)), 0u);
  EXPECT_EQ(colours(601, 799).count(phase_colour(analysis::Phase::other, theme)), 1u) << "no start-up after a loss";
  EXPECT_EQ(loss_text(run->ranks[0].losses.at(0)), "12,345 events lost");
}

TEST(Labels, AreElidedToTheirBoxAndLeftOutWhereTheySayNothing) {
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
    EXPECT_EQ(name_colour("layer1.0.conv1", theme), name_colour("layer4.1.conv2", theme));
    EXPECT_NE(name_colour("layer1.0.conv1", theme), name_colour("layer1.0.bn1", theme));
  }
  EXPECT_EQ(text_colour_on(0xff000000), 0xffffffff);
  EXPECT_EQ(text_colour_on(0xffffffff), 0xff15191f);
}

}  // namespace
}  // namespace paceline::viewer
