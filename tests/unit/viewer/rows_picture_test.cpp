// SPDX-License-Identifier: Apache-2.0
// The picture of the rows that the timeline keeps: after scrolling it is what a new painting of everything would be.
#include <gtest/gtest.h>

#include <QEvent>
#include <QScrollBar>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "analysis/trace/builder.h"
#include "tests/rounds.h"
#include "tests/unit/viewer/timeline_fixture.h"
#include "viewer/timeline/overlay.h"
#include "viewer/timeline/rows_picture.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {
namespace {

class RowsPictureTest : public TimelineTest {
 protected:
  RowsPictureTest() : TimelineTest({.ranks = 9, .iterations = 12, .layers = true}) {
    document.background().finish();  // the waits are hatched
    state.arrangement.set_all_collapsed(false);
  }

  void scroll(int value) {
    timeline.verticalScrollBar()->setValue(value);
    QCoreApplication::processEvents();
  }
  QImage picture() { return timeline.viewport()->grab().toImage(); }
  // Everything painted anew, with new caches of fonts and colours.
  QImage new_picture() {
    QEvent change(QEvent::FontChange);
    QCoreApplication::sendEvent(&timeline, &change);
    return picture();
  }
  void make_moves(unsigned seed);
};

void RowsPictureTest::make_moves(unsigned seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<std::uint64_t>(std::max(end, 1))); };
  const auto move = [&] {
    switch (below(10)) {
      case 0:
        return state.time.zoom(below(state.time.axis().width()), std::exp(below(5) - 2.6));
      case 1:
        return state.time.pan(below(400) - 200);
      case 2:
        return state.selection.select(SliceRef{.rank = std::size_t(below(9)), .slice = std::uint32_t(below(400))});
      case 3:
        return QTest::mouseMove(timeline.viewport(), {header + below(1000), ruler + below(400)});
      case 4:
        return state.arrangement.set_collapsed(std::size_t(below(9)), below(2) == 0);
      case 5:
        return timeline.resize(900 + below(600), 200 + below(500));
      default:
        return scroll(timeline.scroll_y() + below(300) - 150);
    }
  };
  std::size_t scrolled = 0;
  for (std::size_t step = 0; step < 400; step += test::stride(4)) {
    const int before = timeline.scroll_y();
    move();
    QCoreApplication::processEvents();
    const QImage found = picture();
    scrolled += timeline.scroll_y() != before;
    ASSERT_EQ(found, new_picture()) << "in step " << step << " at " << timeline.scroll_y();
  }
  EXPECT_GT(scrolled, 20u);
}

TEST_F(RowsPictureTest, IsThatOfANewPaintingAfterAnyMoves) { make_moves(11); }

TEST_F(RowsPictureTest, OfPinnedRowsIsThatOfANewPaintingAfterAnyMoves) {
  state.arrangement.set_row_pinned(5, "loader", true);
  state.arrangement.set_pinned(7, true);
  state.arrangement.set_collapsed(7, true);
  ASSERT_GT(timeline.geometry().pinned_height(), 20);
  make_moves(13);
}

TEST_F(RowsPictureTest, PinnedRanksStayInViewUnlessTheyTakeMoreThanHalfOfTheRoom) {
  state.arrangement.set_pinned(7, true);
  state.arrangement.set_collapsed(7, true);
  scroll(timeline.verticalScrollBar()->maximum());
  ASSERT_GT(timeline.scroll_y(), 100);
  const Geometry geometry = timeline.geometry();
  const int edge = ruler + geometry.pinned_height();
  for (int y = ruler; y < timeline.viewport()->height(); ++y) {
    const PlacedRow* placed = geometry.row_at({60, y});
    if (placed != nullptr) {
      ASSERT_EQ(placed->row->rank() == 7, y < edge) << y;
    }
  }
  EXPECT_EQ(geometry.y_of(timeline.rows().rows_of(7).front().y), ruler);
  const SliceRef first = first_named("forward", 0);
  state.selection.reveal(first);
  const QRect box = *timeline.geometry().box_of(first);
  EXPECT_GE(box.top(), edge) << "not behind the pinned rank";
  EXPECT_GT(box.height(), 5);
  state.selection.go_to({.rank = 2});
  EXPECT_EQ(timeline.geometry().y_of(timeline.rows().rows_of(2).front().y), edge);
  state.arrangement.set_collapsed(7, false);
  timeline.resize(1000, 2 * edge);
  EXPECT_EQ(timeline.geometry().pinned_height(), 0);
}

// A small view paints only the calls near it, a tall one paints those of all ranks.
TEST_F(RowsPictureTest, ACollectiveIsPaintedAlikeInASmallAndInATallView) {
  state.time.show_part({2e8, 4e8});
  const SliceRef call = *document.insight()->collectives.at(4, 3e8, 1e8);
  const std::span calls = document.insight()->collectives.with(call);
  ASSERT_EQ(calls.size(), 9u);
  RowLayout rows(document, state.arrangement);
  const auto paint = [&](int height, int scroll_y) {
    const Geometry geometry{*run, state, rows, {timeline.viewport()->width(), height}, scroll_y};
    const Theme theme = Theme::of(timeline.palette());
    QImage image(geometry.size, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    Overlay{painter, geometry, theme, timeline.palette(), timeline.font()}.paint_collective(calls);
    return image;
  };
  constexpr int height = 60;
  const auto compare = [&](const char* what) {
    rows.place(0);
    const QImage all = paint(rows.height() + ruler, 0);
    for (int y = 0; y + height <= rows.height(); y += 7) {
      const QRect rows_box(0, ruler, all.width(), height);
      const QImage found = paint(height + ruler, y).copy(rows_box), expected = all.copy(rows_box.translated(0, y));
      ASSERT_EQ(found, expected) << what << ", scrolled by " << y;
    }
  };
  compare("unfolded");
  state.arrangement.set_collapsed(3, true);
  state.arrangement.set_collapsed(4, true);
  compare("two ranks folded");
  state.arrangement.set_rank_hidden(7, true);
  state.arrangement.set_row_pinned(5, rows.row_of(calls[5].ref())->row->name(), true);
  compare("a row pinned and a rank hidden");
  state.arrangement.set_all_collapsed(true);
  compare("folded");
}

TEST_F(RowsPictureTest, ScrollingPaintsOnlyWhatComesIn) {
  state.time.show_part({2e8, 4e8});
  QCoreApplication::processEvents();
  picture();
  const std::size_t all = timeline.draw_counts().rectangles;
  scroll(20);
  picture();
  EXPECT_LT(timeline.draw_counts().rectangles, all / 2);
  EXPECT_GT(timeline.draw_counts().rectangles, 0u);
  scroll(timeline.verticalScrollBar()->maximum());
  picture();
  EXPECT_GT(timeline.draw_counts().rectangles, all / 2) << "nothing was in view before";
}

TEST_F(RowsPictureTest, IsThatOfANewPaintingAtAnyRatioOfPixels) {
  std::mt19937_64 random(12);
  RowLayout rows(document, state.arrangement);
  rows.place(300);
  TimelinePainter painter(document, Theme::light(), QFont());
  for (const double ratio : {1.0, 1.25, 2.0}) {
    const QSize size(800, 300);
    state.time.set_width(size.width() - state.time.names_width());
    int scroll_y = 0;
    const auto paint = [&](QPainter& to, const QRect& part) {
      return painter.paint(to, size, state, rows, scroll_y, std::nullopt, part);
    };
    RowsPicture kept;
    for (int step = 0; step < 20; ++step) {
      scroll_y = std::clamp(scroll_y + static_cast<int>(random() % 400) - 150, 0, rows.height() - 300);
      RowsPicture another;
      const QImage found = kept.update(size, ratio, rows, scroll_y, state.time.names_width(), paint).copy();
      const QImage expected = another.update(size, ratio, rows, scroll_y, state.time.names_width(), paint);
      ASSERT_EQ(found, expected) << "at " << scroll_y << " with ratio " << ratio;
    }
  }
}

TEST(RowsPicture, PaintsRowsThatBecomeReadyWithoutTheOthers) {
  analysis::TraceBuilder builder;
  for (int r = 0; r < 2; ++r) {
    analysis::TrackBuilder& track = builder.add_rank(r, 2).add_main_thread();
    const std::int64_t slices = r == 0 ? 30'000 : 100;  // an index of more than 20,000 is made beside the UI thread
    for (std::int64_t i = 0; i < slices; ++i)
      track.add_slice(10'000'000 / slices * i, 10'000'000 / slices * (i + 1), "step");
  }
  const auto run = index_run("two", builder.finish());
  Document document(run);
  document.background().finish();
  ViewState state(*run);
  RowLayout rows(document, state.arrangement);
  rows.place(200);
  const QSize size(state.time.names_width() + 500, ruler_height + 200);
  state.time.set_width(500);
  TimelinePainter painter(document, Theme::light(), QFont());
  std::vector<QRect> parts;
  const auto paint = [&](QPainter& to, const QRect& part) {
    parts.push_back(part);
    return painter.paint(to, size, state, rows, 0, std::nullopt, part);
  };
  RowsPicture kept;
  const auto update = [&] { return kept.update(size, 1, rows, 0, state.time.names_width(), paint).copy(); };
  QObject::connect(&document, &Document::row_ready, [&] { kept.rows_ready(); });
  const QImage before = update();
  EXPECT_EQ(update(), before);
  EXPECT_EQ(parts, std::vector{QRect(QPoint(0, 0), size)}) << "painted once";
  document.background().finish();
  const QImage after = update();
  EXPECT_NE(after, before);
  ASSERT_EQ(parts.size(), 2u);
  const PlacedRow& row = rows.rows_of(0)[1];
  EXPECT_EQ(parts.back(), QRect(0, ruler_height + row.y, size.width(), row.end_y - row.y));
  kept.invalidate();
  EXPECT_EQ(update(), after);
  kept.rows_ready();
  EXPECT_EQ(update(), after);
  EXPECT_EQ(parts.size(), 3u) << "all rows are complete";
}

}  // namespace
}  // namespace paceline::viewer
