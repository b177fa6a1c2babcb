// SPDX-License-Identifier: Apache-2.0
// Several selected slices and their sums: in the panel, in the status bar and on the timeline.
#include <gtest/gtest.h>

#include <QClipboard>
#include <QTableView>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/user.h"
#include "viewer/drawing/palette.h"
#include "viewer/panels/slice_sums.h"
#include "viewer/panels/table_panel.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace {

// Rank 0: work from 0 to 100 and from 200 to 300 ms with a part inside the second one; rank 1: work from 50 to 150 ms.
std::shared_ptr<const Run> two_ranks() {
  constexpr std::int64_t ms = 1'000'000;
  analysis::TraceBuilder builder;
  auto& first = builder.add_rank(0, 2).add_main_thread();
  first.add_slice(0, 100 * ms, "work");
  first.add_slice(200 * ms, 300 * ms, "work");
  first.add_slice(210 * ms, 230 * ms, "part");
  builder.add_rank(1, 2).add_main_thread().add_slice(50 * ms, 150 * ms, "work");
  return index_run("two", builder.finish());
}

TEST(SliceSums, CountOverlappingTimeOnce) {
  const auto run = two_ranks();
  const std::vector<SliceRef> work{{.rank = 0, .track = 0, .slice = 0}, {.rank = 1, .track = 0, .slice = 0}};
  const SliceSum sum = sum_of(*run, work);
  EXPECT_EQ(sum.count, 2u);
  EXPECT_EQ(sum.total_ns, 200'000'000);
  EXPECT_EQ(sum.covered_ns, 150'000'000);
  EXPECT_EQ(sum_text(sum), "2 slices selected: 200.0 ms in total, 150.0 ms covered");
}

TEST(SliceSums, OfAPartAreThoseOfItsSlicesByName) {
  const auto run = two_ranks();
  const std::atomic<bool> open = false;
  const SliceSums all = sum_kinds(*run, Part{}, Ticket(open));
  EXPECT_EQ(all.all.count, 4u);
  EXPECT_EQ(all.all.total_ns, 320'000'000);
  EXPECT_EQ(all.all.covered_ns, 250'000'000) << "the part is inside the work";
  ASSERT_EQ(all.kinds.size(), 2u);
  EXPECT_EQ(run->trace.names[run->trace.kinds[all.kinds[0].first].name], "work");
  EXPECT_EQ(all.kinds[0].second.covered_ns, 250'000'000);
  EXPECT_EQ(all.kinds[1].second.covered_ns, 20'000'000);
  const SliceSums one = sum_kinds(*run, Part{TimeRange{1e8, 3e8}, {0}}, Ticket(open));
  EXPECT_EQ(one.all.count, 2u);
  EXPECT_EQ(one.all.total_ns, 120'000'000);
}

class Selected : public testing::Test {
 protected:
  TablePanel& panel() { return *user.open<TablePanel>("Selected"); }

  User user;
};

TEST_F(Selected, SlicesAreSummedInThePanelAndTheStatusBar) {
  EXPECT_TRUE(panel().note().startsWith("Select slices")) << panel().note().toStdString();
  const std::vector<SliceRef> slices{user.first_named("backward", 0), user.first_named("backward", 1),
                                     user.first_named("forward", 2)};
  for (const SliceRef& slice : slices) user.click(user.middle_of(slice), Qt::ControlModifier);
  const QString sums = sum_text(sum_of(user.page->run(), slices));
  EXPECT_TRUE(sums.startsWith("3 slices selected: ")) << sums.toStdString();
  EXPECT_EQ(panel().note(), sums);
  EXPECT_TRUE(user.page->status().contains(sums)) << user.page->status().toStdString();
  ASSERT_EQ(panel().model().rowCount(), 2);
  std::int64_t backward = 0;
  for (const SliceRef& slice : {slices[0], slices[1]}) {
    backward += slices_of(user.page->run(), slice).duration_ns[slice.slice];
  }
  const QStringList row = panel().model().texts(0);
  EXPECT_EQ(row[0], "backward");
  EXPECT_EQ(row[2], "2");
  EXPECT_EQ(row[3], duration_text(backward));
}

TEST_F(Selected, AClickOnARowKeepsTheSelection) {
  for (const int rank : {0, 1}) user.click(user.middle_of(user.first_named("backward", rank)), Qt::ControlModifier);
  const auto before = user.state().selection.slices();
  ASSERT_EQ(before.size(), 2u);
  const TimeRange view = user.view();
  QTableView& table = panel().view();
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(table.model()->index(0, 0)).center());
  user.finish();
  EXPECT_EQ(user.state().selection.slices(), before);
  EXPECT_NE(user.view(), view);
}

TEST_F(Selected, SlicesOfABoxAreSummedAndCopied) {
  user.state().selection.select_range(TimeRange{1e8, 4e8}, {1, 2});
  user.finish();
  EXPECT_TRUE(panel().note().endsWith("; they begin in the selected 300.0 ms of 2 ranks"))
      << panel().note().toStdString();
  const int rows = panel().model().rowCount();
  EXPECT_GT(rows, 3);
  panel().view().setFocus();
  user.press("Ctrl+C");
  EXPECT_EQ(QApplication::clipboard()->text().split('\n', Qt::SkipEmptyParts).size(), rows + 1);
}

TEST_F(Selected, RSelectsTheTimeFromTheFirstStartToTheLastEnd) {
  const SliceRef early = user.first_named("forward", 0), late = user.first_named("backward", 1);
  user.click(user.middle_of(late));
  user.click(user.middle_of(early), Qt::ControlModifier);
  user.press("R");
  ASSERT_TRUE(user.state().selection.range());
  EXPECT_EQ(user.state().selection.range()->begin_ns, double(slices_of(user.page->run(), early).start_ns[early.slice]));
  EXPECT_EQ(user.state().selection.range()->end_ns, double(slices_of(user.page->run(), late).end_ns(late.slice)));
}

TEST_F(Selected, EachSliceHasAFrame) {
  const SliceRef one = user.first_named("backward", 0), other = user.first_named("backward", 3);
  const auto framed = [&](const SliceRef& slice) {
    const QPoint corner = user.timeline->geometry().box_of(slice)->topLeft();
    return user.timeline->viewport()->grab().toImage().pixel(corner + QPoint(4, 0)) ==
           Theme::of(user.timeline->palette()).selection;
  };
  EXPECT_FALSE(framed(one) || framed(other));
  user.click(user.middle_of(one));
  user.click(user.middle_of(other), Qt::ControlModifier);
  EXPECT_TRUE(framed(one) && framed(other));
  user.click(user.at(0.5, user.timeline->viewport()->height() - 2), Qt::ControlModifier);
  EXPECT_EQ(user.state().selection.slices().size(), 2u) << "a click beside all slices adds none";
  user.press("Esc");
  EXPECT_TRUE(user.state().selection.slices().empty());
  EXPECT_FALSE(framed(one) || framed(other));
}

}  // namespace
}  // namespace paceline::viewer
