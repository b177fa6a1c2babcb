// SPDX-License-Identifier: Apache-2.0
// The timeline as a screen reader meets it.
#include <gtest/gtest.h>

#include <QAccessible>
#include <QAccessibleActionInterface>

#include "tests/unit/viewer/timeline_fixture.h"
#include "viewer/session/selection.h"
#include "viewer/timeline/accessible_timeline.h"

namespace paceline::viewer {
namespace {

class AccessibleTimeline : public TimelineTest {
 protected:
  AccessibleTimeline()
      : TimelineTest((install_accessible_timeline(), SimulatedRun{.ranks = 4, .iterations = 6, .layers = false})) {
    EXPECT_TRUE(state.time.show_iterations(2, 2));
  }
  QAccessibleInterface* tree() { return QAccessible::queryAccessibleInterface(&timeline); }
  // The row of this name; nullptr if there is none.
  QAccessibleInterface* row(const QString& name) {
    for (int i = 0; i < tree()->childCount(); ++i) {
      if (tree()->child(i)->text(QAccessible::Name) == name) return tree()->child(i);
    }
    return nullptr;
  }
  static QAccessibleInterface* slice(QAccessibleInterface* row, const QString& beginning) {
    for (int i = 0; i < row->childCount(); ++i) {
      if (row->child(i)->text(QAccessible::Name).startsWith(beginning)) return row->child(i);
    }
    return nullptr;
  }
};

TEST_F(AccessibleTimeline, ReadsOutASliceOnRankThree) {
  ASSERT_NE(tree(), nullptr);
  EXPECT_EQ(tree()->text(QAccessible::Name), "Timeline");
  QAccessibleInterface* main = row("Rank 3, main thread");
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->parent(), tree());
  EXPECT_EQ(tree()->indexOfChild(main), 10) << "three rows for each rank before it";
  QAccessibleInterface* backward = slice(main, "backward");
  ASSERT_NE(backward, nullptr);
  EXPECT_EQ(backward->parent(), main);
  SliceRef ref = first_named("backward", 3);
  while (name_of(ref) != "backward" ||
         double(slices_of(*run, ref).start_ns[ref.slice]) < state.time.axis().visible().begin_ns)
    ++ref.slice;
  EXPECT_EQ(backward->text(QAccessible::Name), slice_text(*run, ref));
  EXPECT_TRUE(backward->text(QAccessible::Name).endsWith(" ms, rank 3, main thread"));
  const QPoint middle = timeline.viewport()->mapToGlobal(middle_of(ref));
  EXPECT_TRUE(backward->rect().contains(middle));
  EXPECT_EQ(main->childAt(middle.x(), middle.y()), backward);
}

TEST_F(AccessibleTimeline, PressingASliceSelectsIt) {
  QAccessibleInterface* forward = slice(row("Rank 2, main thread"), "forward");
  ASSERT_NE(forward, nullptr);
  EXPECT_FALSE(forward->state().selected);
  forward->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
  ASSERT_TRUE(state.selection.slice());
  EXPECT_EQ(state.selection.slice()->rank, 2u);
  EXPECT_EQ(name_of(*state.selection.slice()), "forward");
  QAccessibleInterface* focused = tree()->focusChild();
  ASSERT_NE(focused, nullptr);
  EXPECT_TRUE(focused->text(QAccessible::Name).startsWith("forward"));
}

TEST_F(AccessibleTimeline, FollowsTheViewAndTheFolding) {
  QAccessibleInterface* rank = row("Rank 1");
  ASSERT_NE(rank, nullptr);
  EXPECT_TRUE(rank->state().expanded);
  QAccessibleInterface* main = row("Rank 1, main thread");
  const int in_iteration = main->childCount();
  EXPECT_GT(in_iteration, 3);
  state.time.show_all();
  EXPECT_GT(row("Rank 1, main thread")->childCount(), in_iteration);
  state.arrangement.set_collapsed(1, true);
  EXPECT_EQ(row("Rank 1, main thread"), nullptr);
  EXPECT_TRUE(row("Rank 1")->state().collapsed);
}

}  // namespace
}  // namespace paceline::viewer
