// SPDX-License-Identifier: Apache-2.0
// What the user does with the rows, the range of time and the slices that belong together.
#include <gtest/gtest.h>

#include <QScrollBar>
#include <algorithm>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/timeline_fixture.h"
#include "viewer/session/selection.h"

namespace paceline::viewer {
namespace {

class HandsTest : public TimelineTest {
 protected:
  HandsTest() : TimelineTest({.ranks = 4, .iterations = 6, .layers = false}) { timeline.resize(1400, 700); }
  int rank_y(std::size_t rank) const { return timeline.geometry().y_of(timeline.rows().rows_of(rank).front().y) + 5; }
  double start_of(const SliceRef& ref) const { return double(slices_of(*run, ref).start_ns[ref.slice]); }
  double end_of(const SliceRef& ref) const { return double(slices_of(*run, ref).end_ns(ref.slice)); }
  int x_of(double time_ns) const { return timeline.geometry().x_of(time_ns); }
};

TEST_F(HandsTest, TheEdgesOfTheRangeSnapToSlicesUnlessCtrlIsHeld) {
  ASSERT_TRUE(state.time.show_iterations(2, 3));
  state.selection.reveal(first_named("backward"));
  const SliceRef backward = *state.selection.slice();
  state.time.zoom_to(backward);
  const int y = middle_of(backward).y(), left = x_of(start_of(backward)), right = x_of(end_of(backward));
  drag({left - 3, y}, {right + 4, y}, Qt::ShiftModifier);
  EXPECT_EQ(state.selection.range(), (TimeRange{start_of(backward), end_of(backward)}));
  state.selection.select_range(std::nullopt);
  drag({left - 3, y}, {right + 4, y}, Qt::ShiftModifier | Qt::ControlModifier);
  ASSERT_TRUE(state.selection.range());
  EXPECT_EQ(state.selection.range()->begin_ns, timeline.geometry().time_at(left - 3));
  EXPECT_EQ(state.selection.range()->end_ns, timeline.geometry().time_at(right + 4));
}

TEST_F(HandsTest, AnEdgeOfTheRangeCanBeDragged) {
  state.time.show_part({1e8, 2e8});
  state.selection.select_range(TimeRange{1.2e8, 1.4e8});
  drag({x_of(1.4e8), 20}, {x_of(1.6e8), 20});
  ASSERT_TRUE(state.selection.range());
  EXPECT_EQ(state.selection.range()->begin_ns, 1.2e8);
  EXPECT_NEAR(state.selection.range()->end_ns, 1.6e8, state.time.axis().ns_per_pixel());
  drag({x_of(1.2e8), 20}, {x_of(1.1e8), 20});
  EXPECT_NEAR(state.selection.range()->begin_ns, 1.1e8, state.time.axis().ns_per_pixel());
  EXPECT_EQ(state.time.axis().visible(), (TimeRange{1e8, 2e8})) << "the view stays where it is";
}

TEST_F(HandsTest, CtrlDragSelectsABoxOfSomeRanks) {
  drag({header + 100, rank_y(1)}, {header + 300, rank_y(2)}, Qt::ControlModifier);
  ASSERT_TRUE(state.selection.range());
  EXPECT_NEAR(state.selection.range()->begin_ns, state.time.axis().time_at(100), 1);
  EXPECT_EQ(state.selection.ranks(), (std::set<std::size_t>{1, 2}));
  const QImage picture = timeline.viewport()->grab().toImage();
  const auto pale = [&](std::size_t rank) {
    return qGray(picture.pixel(header + 110, rank_y(rank))) - qGray(picture.pixel(header + 110, rank_y(1)));
  };
  EXPECT_NE(pale(0), 0) << "ranks outside the box are paler";
  QTest::mouseClick(timeline.viewport(), Qt::LeftButton, Qt::ControlModifier, middle_of(first_named("startup", 1)));
  EXPECT_FALSE(state.selection.range());
  EXPECT_EQ(state.selection.slice(), first_named("startup", 1)) << "a click with Ctrl selects";
}

TEST_F(HandsTest, RSelectsTheTimeOfTheSlice) {
  const SliceRef forward = first_named("forward", 1);
  state.selection.reveal(forward);
  press(Qt::Key_R);
  EXPECT_EQ(state.selection.range(), (TimeRange{start_of(forward), end_of(forward)}));
}

TEST_F(HandsTest, CommaAndPeriodGoToSlicesOfTheSameName) {
  const SliceRef first = first_named("forward", 1);
  state.selection.reveal(first);
  press(Qt::Key_Period);
  ASSERT_TRUE(state.selection.slice());
  const SliceRef second = *state.selection.slice();
  EXPECT_EQ(name_of(second), "forward");
  EXPECT_GT(start_of(second), end_of(first));
  press(Qt::Key_Comma);
  EXPECT_EQ(state.selection.slice(), first);
  press(Qt::Key_Comma);
  EXPECT_EQ(state.selection.slice(), first) << "there is none before it";
}

TEST_F(HandsTest, ViewsGoBackAndForward) {
  state.time.jump_to({1e8, 2e8});
  state.time.jump_to({1.2e8, 1.3e8});
  press(Qt::Key_Backspace);
  press(Qt::Key_Backspace);
  EXPECT_EQ(state.time.axis().visible(), state.time.axis().whole());
  press(Qt::Key_Backspace, Qt::ShiftModifier);
  EXPECT_EQ(state.time.axis().visible(), (TimeRange{1e8, 2e8}));
  press(Qt::Key_Backspace, Qt::ShiftModifier);
  EXPECT_EQ(state.time.axis().visible(), (TimeRange{1.2e8, 1.3e8}));
  press(Qt::Key_Backspace);
  state.time.jump_to({3e8, 4e8});
  press(Qt::Key_Backspace, Qt::ShiftModifier);
  EXPECT_EQ(state.time.axis().visible(), (TimeRange{3e8, 4e8})) << "a new view has no other after it";
}

TEST_F(HandsTest, BookmarksAreSetVisitedAndRemovedByKeys) {
  QTest::mouseMove(timeline.viewport(), {header + 200, 300});
  press(Qt::Key_M);
  QTest::mouseMove(timeline.viewport(), {header + 900, 300});
  press(Qt::Key_M);
  ASSERT_EQ(state.time.bookmarks().size(), 2u);
  EXPECT_NEAR(state.time.bookmarks()[0].time_ns, state.time.axis().time_at(200), 1);
  const QImage picture = timeline.viewport()->grab().toImage();
  EXPECT_EQ(picture.pixel(header + 200, 4), 0xff6f2da8);
  const std::vector<Bookmark> set = state.time.bookmarks();
  state.time.jump_to({set[0].time_ns - 1e6, set[0].time_ns + 1e6});
  press(Qt::Key_N);
  EXPECT_NEAR((state.time.axis().visible().begin_ns + state.time.axis().visible().end_ns) / 2, set[1].time_ns, 1);
  press(Qt::Key_N);
  EXPECT_NEAR((state.time.axis().visible().begin_ns + state.time.axis().visible().end_ns) / 2, set[1].time_ns, 1);
  press(Qt::Key_N, Qt::ShiftModifier);
  EXPECT_NEAR((state.time.axis().visible().begin_ns + state.time.axis().visible().end_ns) / 2, set[0].time_ns, 1);
  state.time.toggle_bookmark(set[0].time_ns + state.time.axis().ns_per_pixel());
  EXPECT_EQ(state.time.bookmarks(), (std::vector<Bookmark>{set[1]})) << "one that is near is removed";
}

TEST_F(HandsTest, RowsAndRanksAreHiddenAndShownAgain) {
  const std::size_t rows = timeline.rows().rows().size();
  state.selection.reveal({.rank = 1, .track = 1, .slice = 0});  // the loader
  press(Qt::Key_H);
  EXPECT_EQ(timeline.rows().rows().size(), rows - 4) << "the loaders of all ranks";
  EXPECT_EQ(timeline.rows().row_of({.rank = 3, .track = 1, .slice = 0}), nullptr);
  state.selection.reveal(first_named("forward", 2));
  press(Qt::Key_H, Qt::ShiftModifier);
  EXPECT_TRUE(state.arrangement.rank_hidden(2));
  EXPECT_TRUE(timeline.rows().rows_of(2).empty());
  state.selection.reveal(first_named("backward", 2));
  EXPECT_FALSE(state.arrangement.rank_hidden(2)) << "to reveal a slice shows its rank";
  state.arrangement.set_rank_hidden(0, true);
  state.arrangement.show_hidden();
  EXPECT_EQ(timeline.rows().rows().size(), rows);
}

TEST_F(HandsTest, RanksAreMovedByKeysAndByTheirNames) {
  const auto order = [&] { return state.arrangement.groups().at(0).ranks; };
  state.selection.reveal(first_named("forward", 1));
  press(Qt::Key_Down, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(order(), (std::vector<std::size_t>{0, 2, 1, 3}));
  press(Qt::Key_Up, Qt::ControlModifier | Qt::ShiftModifier);
  EXPECT_EQ(order(), (std::vector<std::size_t>{0, 1, 2, 3}));
  drag({60, rank_y(3)}, {60, rank_y(0)});
  EXPECT_EQ(order(), (std::vector<std::size_t>{3, 0, 1, 2}));
  drag({60, rank_y(3)}, {60, rank_y(1)});
  EXPECT_EQ(order(), (std::vector<std::size_t>{0, 1, 3, 2}));
  state.arrangement.set_rank_hidden(1, true);
  state.arrangement.move_rank(2, -1);
  state.arrangement.show_hidden();
  EXPECT_EQ(order(), (std::vector<std::size_t>{0, 2, 3, 1})) << "a hidden rank keeps a place";
  state.arrangement.sort_ranks(Arrangement::RankOrder::number);
  EXPECT_EQ(order(), (std::vector<std::size_t>{0, 1, 2, 3}));
}

TEST_F(HandsTest, HoveringACollectiveLightsItOnAllRanks) {
  document.background().finish();
  ASSERT_TRUE(state.time.show_iterations(2, 2));
  SliceRef call = first_named("MPI_Allreduce", 1);
  while (start_of(call) < state.time.axis().visible().begin_ns || name_of(call) != "MPI_Allreduce") ++call.slice;
  QTest::mouseMove(timeline.viewport(), middle_of(call));
  const auto lit = timeline.lit_collective();
  ASSERT_EQ(lit.size(), 4u);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(lit[rank].rank, rank);
    EXPECT_EQ(name_of(lit[rank].ref()), "MPI_Allreduce");
    EXPECT_EQ(double(lit[rank].from_ns), start_of(lit[rank].ref()));
  }
  const int in_transfer = middle_of(call).x();
  QTest::mouseMove(timeline.viewport(), {10, 10});
  state.arrangement.set_all_collapsed(true);
  // The line through the arrivals on the strip of rank 0, which arrives before the slow rank 1 does.
  const QPoint arrival(x_of(double(lit[0].from_ns)),
                       timeline.geometry().y_of(timeline.rows().rows_of(0).front().end_y) - 12);
  const auto grey = [&] { return qGray(timeline.viewport()->grab().toImage().pixel(arrival)); };
  EXPECT_GT(grey(), 100);
  QTest::mouseMove(timeline.viewport(), {in_transfer, rank_y(3)});
  EXPECT_EQ(timeline.lit_collective().size(), 4u) << "on the strip of a folded rank";
  EXPECT_LT(grey(), 100);
  QTest::mouseMove(timeline.viewport(), {10, 10});
  EXPECT_TRUE(timeline.lit_collective().empty());
  state.selection.reveal(call);
  press(Qt::Key_Down, Qt::ControlModifier);
  EXPECT_EQ(state.selection.slice(), lit[2].ref()) << "the same collective on the next rank";
}

TEST_F(HandsTest, TheCriticalPathLeadsThroughTheRun) {
  document.background().finish();
  const auto picture = [&] { return timeline.viewport()->grab().toImage(); };
  const QImage before = picture();
  press(Qt::Key_C);
  document.background().finish();
  const auto* segments = timeline.path().segments();
  ASSERT_NE(segments, nullptr);
  ASSERT_FALSE(segments->empty());
  EXPECT_TRUE(std::ranges::is_sorted(*segments, {}, [](const auto& one) { return one.to.time_ns; }));
  EXPECT_NE(picture(), before);
  state.arrangement.set_all_collapsed(true);
  EXPECT_NE(picture(), before);
  const DrawCounts counts = timeline.draw_counts();
  EXPECT_LE(counts.rectangles, std::size_t(state.time.axis().width()) * 6) << "bounded by the columns";
  press(Qt::Key_C);
  state.arrangement.set_all_collapsed(false);
  EXPECT_EQ(picture(), before);
}

// A call that starts two kernels, and a message from rank 0 to rank 1.
std::shared_ptr<const viewer::Run> run_with_links() {
  analysis::TraceBuilder builder;
  for (int r = 0; r < 2; ++r) {
    analysis::RankBuilder& rank = builder.add_rank(r, 2);
    rank.info().end_ns = 1000;
    rank.add_communicator({rank.names().intern("MPI_COMM_WORLD"), 1, 2}, r);
    analysis::TrackBuilder& main = rank.add_main_thread();
    main.add_slice(100, 150, "cudaLaunchKernel", "cuda", "launch");
    main.argument("correlation", 7);
    main.add_slice(200 + 100 * r, 400, r == 0 ? "MPI_Send" : "MPI_Recv", "mpi", "point-to-point");
    main.argument("bytes", 80);
    main.argument("peer", 1 - r);
    main.argument("tag", 5);
    main.text_argument("communicator", "MPI_COMM_WORLD");
    analysis::TrackBuilder& stream = rank.add_track(analysis::TrackKind::stream, "GPU 0 stream 7", 7);
    for (const int start : {300, 500}) {
      stream.add_slice(start, start + 100, "kernel", "cuda", "kernel");
      stream.argument("correlation", 7);
    }
  }
  return index_run("links", builder.finish());
}

class LinksTest : public TimelineTest {
 protected:
  LinksTest() : TimelineTest(run_with_links()) {}
};

TEST_F(LinksTest, ArrowsLeadFromACallToItsKernelsAndBack) {
  const QImage before = timeline.viewport()->grab().toImage();
  const SliceRef call = first_named("cudaLaunchKernel", 1), kernel = first_named("kernel", 1);
  QTest::mouseMove(timeline.viewport(), middle_of(call));
  ASSERT_EQ(timeline.lit_partners().size(), 2u);
  EXPECT_EQ(timeline.lit_partners()[0], kernel);
  EXPECT_NE(timeline.viewport()->grab().toImage(), before);
  QTest::mouseMove(timeline.viewport(), middle_of(kernel));
  EXPECT_EQ(timeline.lit_partners(), std::vector{call});
  state.selection.select(call);
  press(Qt::Key_J);
  EXPECT_EQ(state.selection.slice(), kernel);
  press(Qt::Key_J);
  EXPECT_EQ(state.selection.slice(), call);
}

TEST_F(LinksTest, TheTooltipOfAKernelHasItsLaunchAndTheDelayAfterItsCall) {
  const SliceRef call = first_named("cudaLaunchKernel", 1), kernel = first_named("kernel", 1);
  timeline.viewport()->grab();  // the rows are drawn, and find their slices
  QTest::mouseMove(timeline.viewport(), middle_of(kernel));
  const QString text = timeline.tooltip_at(middle_of(kernel));
  EXPECT_TRUE(text.contains(tooltip_line("start after its call", "150 ns"))) << text.toStdString();
  EXPECT_TRUE(text.contains("launched")) << text.toStdString();
  EXPECT_EQ(text.count("</table>"), 1);
  QTest::mouseMove(timeline.viewport(), middle_of(call));
  EXPECT_FALSE(timeline.tooltip_at(middle_of(call)).contains("launched"));
  const SliceRef send = first_named("MPI_Send", 0);
  QTest::mouseMove(timeline.viewport(), middle_of(send));
  EXPECT_FALSE(timeline.tooltip_at(middle_of(send)).contains("launched"));
}

TEST_F(LinksTest, ArrowsLeadFromASendToItsReceive) {
  const SliceRef send = first_named("MPI_Send", 0), receive = first_named("MPI_Recv", 1);
  state.selection.select(send);
  EXPECT_EQ(timeline.lit_partners(), std::vector{receive});
  press(Qt::Key_J);
  EXPECT_EQ(state.selection.slice(), receive);
}

}  // namespace
}  // namespace paceline::viewer
