// SPDX-License-Identifier: Apache-2.0
// The kinds of rows, and how they are placed.
#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <set>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/simulated_run.h"
#include "viewer/drawing/phase_strip.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {
namespace {

QImage painted(Document& document, const ViewState& state, const RowLayout& rows, QSize size) {
  TimelinePainter painter(document, Theme::light(), QFont());
  QImage image(size, QImage::Format_RGB32);
  QPainter to(&image);
  painter.paint(to, size, state, rows, 0, std::nullopt);
  return image;
}

// 0.9 s of a rank: its CPU time, 0, 40 and 100 % in thirds, memory, and errors that never occurred.
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

TEST(Counters, AreFoldedIntoTheFirstOne) {
  const auto run = run_with_counters();
  Document document(run);
  ViewState state(*run);
  TimelineWidget timeline(document, state);
  timeline.resize(1100, 400);
  timeline.show();
  ASSERT_EQ(timeline.rows().rows_of(0).size(), 3u) << "the phases, the thread and CPU time";
  const int height = timeline.rows().height();
  const PlacedRow cpu = timeline.rows().rows_of(0)[2];
  const QPoint name(60, ruler_height + (cpu.y + cpu.end_y) / 2);
  EXPECT_TRUE(timeline.tooltip_at(name + QPoint(header_width, 0)).contains("CPU time"));
  QTest::mouseClick(timeline.viewport(), Qt::LeftButton, {}, name);
  ASSERT_EQ(timeline.rows().rows_of(0).size(), 4u) << "memory; a counter that was never above 0 has no row";
  const PlacedRow& memory = timeline.rows().rows_of(0)[3];
  EXPECT_TRUE(timeline.tooltip_at({header_width + 5, ruler_height + memory.y + 5}).contains("memory"));
  EXPECT_GT(timeline.rows().height(), height);
  state.arrangement.set_all_counters_unfolded(false);
  EXPECT_EQ(timeline.rows().height(), height);
}

// The height of the graph at this share of the width, as a share of the row's height.
double drawn_height(const QImage& image, const PlacedRow& row, double share) {
  const int x = header_width + static_cast<int>(share * (image.width() - header_width));
  const QRgb background = Theme::light().background;
  for (int y = row.y; y < row.end_y - 1; ++y) {
    if (image.pixel(x, ruler_height + y) != background) {
      return static_cast<double>(row.end_y - 1 - y) / (row.end_y - row.y - 1);
    }
  }
  return 0;
}

TEST(Counters, AreDrawnToScale) {
  const auto run = run_with_counters();
  Document document(run);
  ViewState state(*run);
  state.arrangement.set_counters_unfolded(0, true);
  state.time.set_width(700);
  const RowLayout rows(document, state.arrangement);
  const QImage image = painted(document, state, rows, {header_width + 700, 300});
  const PlacedRow &cpu = rows.rows_of(0)[2], &memory = rows.rows_of(0)[3];
  const double pixel = 1.0 / (cpu.end_y - cpu.y - 1);
  EXPECT_NEAR(drawn_height(image, cpu, 0.15), 0, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, cpu, 0.52), 0.4, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, cpu, 0.85), 1, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, memory, 0.27), 1.0 / 3, 1.6 * pixel);
  EXPECT_NEAR(drawn_height(image, memory, 0.73), 1, 1.6 * pixel);
}

TEST(Counters, HaveALeastAndAGreatestValueInARange) {
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

TEST(Counters, ShowValueAndUnitInTheTooltip) {
  const auto run = run_with_counters();
  Document document(run);
  ViewState state(*run);
  TimelineWidget timeline(document, state);
  timeline.resize(header_width + 900, 400);
  timeline.show();
  const PlacedRow& cpu = timeline.rows().rows_of(0)[2];
  const int left = header_width + state.time.axis().width() * 45 / 90;
  EXPECT_TRUE(timeline.tooltip_at({left, ruler_height + cpu.y + 5}).contains("<td>40 %</td>"));
  const PlacedRow& first = timeline.rows().rows_of(0)[0];
  ASSERT_GT(first.y, 0);
  EXPECT_TRUE(timeline.tooltip_at({left, ruler_height + first.y}).startsWith("<b>Rank 0: other</b>"));
  EXPECT_EQ(timeline.tooltip_at({left, ruler_height + first.y - 1}), "") << "the margin above the first row";
}

TEST(Losses, AreHatchedInGreyAndBelongToNoPhase) {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.info().end_ns = 1000;
  analysis::TrackBuilder& main = rank.add_main_thread();
  main.add_slice(800, 1000, "iteration", "paceline.trainer", "iteration");
  main.add_lost(200, 600, 12'345);
  const auto run = index_run("lost", builder.finish());
  Document document(run);
  ViewState state(*run);
  state.time.set_width(1000);
  const RowLayout rows(document, state.arrangement);
  const QImage image = painted(document, state, rows, {header_width + 1000, 200});
  const Theme theme = Theme::light();
  const int top = ruler_height + rows.rows_of(0).front().y, bottom = ruler_height + rows.rows_of(0).front().end_y;
  const auto colours = [&](int from, int until) {
    std::set<QRgb> seen;
    for (int x = header_width + from; x < header_width + until; ++x) {
      for (int y = top; y < bottom; ++y) seen.insert(image.pixel(x, y) | 0xff000000);
    }
    return seen;
  };
  EXPECT_EQ(colours(150, 199).count(phase_colour(analysis::Phase::startup, theme)), 1u);
  EXPECT_EQ(colours(400, 600), (std::set<QRgb>{theme.background, theme.faint_text}));
  EXPECT_EQ(colours(202, 599).count(phase_colour(analysis::Phase::startup, theme)), 0u);
  EXPECT_EQ(colours(601, 799).count(phase_colour(analysis::Phase::other, theme)), 1u) << "no start-up after a loss";
  EXPECT_EQ(run->ranks[0].unrecorded.at(0).text, "12,345 events lost");
}

TEST(MpiCalls, AreDrawnOnceAmongTheSlicesOfTheirThread) {
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  main.add_slice(0, 1000, "step");
  main.add_slice(100, 200, "MPI_Send", "mpi", "point-to-point");
  const auto run = index_run("calls", builder.finish());
  Document document(run);
  ViewState state(*run);
  const RowLayout rows(document, state.arrangement);
  EXPECT_EQ(rows.rows_of(0).size(), 2u) << "the phases and the thread";
}

// A stream that works in [0, 300), [600, 700) and [800, 900) ms.
TEST(IdleStreams, HaveAStripOfTheReasons) {
  constexpr std::int64_t ms = 1'000'000;
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.info().start_ns = 0;
  rank.info().end_ns = 900 * ms;
  analysis::TrackBuilder& thread = rank.add_main_thread();
  analysis::TrackBuilder& stream = rank.add_track(analysis::TrackKind::stream, "GPU 0 stream 7");
  const auto kernel = [&](std::int64_t launch_ms, std::int64_t start_ms, std::int64_t end_ms, int id) {
    thread.add_slice(launch_ms * ms, (launch_ms + 1) * ms, "cudaLaunchKernel", "cuda", "runtime");
    thread.argument("correlation", id);
    stream.add_slice(start_ms * ms, end_ms * ms, "kernel", "cuda", "kernel");
    stream.argument("correlation", id);
  };
  kernel(0, 0, 300, 1);
  thread.add_slice(100 * ms, 200 * ms, "cudaDeviceSynchronize", "cuda", "synchronization");
  kernel(500, 600, 700, 2);  // launched after the last one had ended
  kernel(650, 800, 900, 3);  // launched in time
  const auto run = index_run("idle", builder.finish());
  Document document(run);
  ViewState state(*run);
  TimelineWidget timeline(document, state);
  timeline.resize(header_width + 900, 400);
  timeline.show();
  QCoreApplication::processEvents();
  state.time.set_width(900);
  state.time.show_all();
  const auto& rows = timeline.rows().rows();
  const auto strip = std::ranges::find_if(rows, [](const PlacedRow& placed) { return placed.row->is_states(); });
  ASSERT_NE(strip, rows.end());
  const QImage image = painted(document, state, timeline.rows(), {header_width + 900, 400});
  const auto all = [&](int x, QRgb colour) {
    for (int y = strip->y; y < strip->end_y; ++y) {
      if (image.pixel(header_width + x, ruler_height + y) != colour) return false;
    }
    return true;
  };
  const Theme theme = Theme::light();
  const QRgb host_wait = phase_colour(analysis::Phase::launch, theme),
             other = phase_colour(analysis::Phase::other, theme);
  EXPECT_TRUE(all(302, host_wait) && all(450, host_wait) && all(598, host_wait));
  EXPECT_TRUE(all(702, other) && all(798, other));
  EXPECT_FALSE(all(250, host_wait) || all(250, other) || all(650, other) || all(850, other));
  const auto tip = [&](int x) { return timeline.tooltip_at({header_width + x, ruler_height + strip->y + 3}); };
  EXPECT_TRUE(tip(450).contains("host wait") && tip(450).contains("300.0 ms")) << tip(450).toStdString();
  EXPECT_TRUE(tip(750).contains("other") && tip(750).contains("100.0 ms")) << tip(750).toStdString();
  EXPECT_EQ(tip(650), QString());
  const PlacedRow& phases = timeline.rows().rows_of(0)[0];
  const QString idle = timeline.tooltip_at({header_width + 150, ruler_height + phases.y + 3});
  EXPECT_TRUE(idle.contains("Rank 0: idle") && idle.contains("waits for its GPU")) << idle.toStdString();
}

TEST(Threads, ThatNeverRunAtTheSameTimeShareARow) {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.add_main_thread().add_slice(0, 1000, "step");
  rank.add_track(analysis::TrackKind::thread, "first", 2).add_slice(100, 200, "work");
  rank.add_track(analysis::TrackKind::thread, "second", 3).add_slice(200, 300, "later");
  rank.add_track(analysis::TrackKind::thread, "third", 4).add_slice(250, 400, "beside it");
  const auto run = index_run("threads", builder.finish());
  Document document(run);
  ViewState state(*run);
  TimelineWidget timeline(document, state);
  timeline.resize(header_width + 1000, 300);
  timeline.show();
  const auto rows = timeline.rows().rows_of(0);
  ASSERT_EQ(rows.size(), 4u) << "the phases, the main thread, two threads in one row, and the third one";
  for (const auto& [time, track] : {std::pair(150, 1u), std::pair(240, 2u)}) {
    const QPoint at(header_width + static_cast<int>(state.time.axis().x_of(time)), ruler_height + rows[2].y + 5);
    const auto slice = timeline.slice_at(at);
    ASSERT_TRUE(slice) << time;
    EXPECT_EQ(slice->track, track);
    EXPECT_EQ(timeline.rows().row_of(*slice), &rows[2]);
  }
}

// A large job: 1,000 ranks with 20 rows each.
TEST(RowLayout, FindsTheVisibleRowsOfAThousandRanks) {
  analysis::TraceBuilder builder;
  for (int r = 0; r < 1000; ++r) {
    analysis::RankBuilder& rank = builder.add_rank(r, 1000);
    rank.info().end_ns = 1000;
    rank.add_main_thread().add_slice(0, 1000, "step");
    for (int thread = 2; thread <= 19; ++thread) {
      rank.add_track(analysis::TrackKind::thread, "thread", static_cast<std::uint64_t>(thread))
          .add_slice(0, 10, "work");
    }
  }
  const auto run = index_run("large", builder.finish());
  Document document(run);
  ViewState state(*run);
  state.arrangement.set_all_collapsed(false);
  RowLayout rows(document, state.arrangement);
  ASSERT_EQ(rows.rows().size(), 20'000u);
  // Against a walk over all rows.
  for (const int top : {-50, 0, 1, 300'000, rows.height() - 700, rows.height()}) {
    std::vector<const Row*> expected, found;
    for (const PlacedRow& placed : rows.rows()) {
      if (placed.y < top + 700 && placed.end_y > top) expected.push_back(placed.row);
    }
    for (const PlacedRow& placed : rows.rows_between(top, top + 700)) found.push_back(placed.row);
    EXPECT_EQ(found, expected) << top;
    const auto walked = std::ranges::find_if(
        rows.rows(), [&](const PlacedRow& placed) { return placed.y <= top && top < placed.end_y; });
    EXPECT_EQ(rows.at(top), walked == rows.rows().end() ? nullptr : &*walked) << top;
  }
  const PlacedRow& last = rows.rows().back();
  EXPECT_EQ(rows.at(last.end_y - 1), &last);
  EXPECT_EQ(rows.at(last.end_y), nullptr) << "the margin";

  // A frame draws what is visible: the strips and slices of some 30 rows.
  TimelinePainter painter(document, Theme::light(), QFont());
  QImage image(1200, 700, QImage::Format_RGB32);
  QPainter to(&image);
  state.time.set_width(1000);
  EXPECT_LE(painter.paint(to, image.size(), state, rows, 300'000, std::nullopt).rectangles, 100u);

  // Folding all ranks is one change, after which the rows are placed once.
  QSignalSpy folded(&state.arrangement, &Arrangement::folds_changed);
  state.arrangement.set_all_collapsed(true);
  EXPECT_EQ(folded.count(), 1);
  rows.place(0);
  EXPECT_EQ(rows.rows().size(), 1000u);
  EXPECT_EQ(rows.height(), 1000 * RowLayout::lowest_folded);
}

TEST(RowLayout, UsesRoomToSpareForTallerLevels) {
  const auto run = index_run("simulated", simulate({.ranks = 2, .iterations = 2}));
  Document document(run);
  ViewState state(*run);
  RowLayout rows(document, state.arrangement);
  EXPECT_EQ(rows.level_height(), RowLayout::lowest_level);
  const int lowest = rows.height();
  for (const int room : {lowest - 1, lowest, lowest + 20, lowest + 60, lowest + 100, 10'000}) {
    rows.place(room);
    EXPECT_TRUE(rows.height() <= room || rows.level_height() == RowLayout::lowest_level) << room;
    EXPECT_LE(rows.level_height(), RowLayout::highest_level);
  }
  EXPECT_EQ(rows.level_height(), RowLayout::highest_level);
}

}  // namespace
}  // namespace paceline::viewer
