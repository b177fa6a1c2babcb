// SPDX-License-Identifier: Apache-2.0
// What somebody who has not seen a run looks for first, in runs whose secrets are drawn at random: each is found with
// at most three actions, by mouse and keys alone.
#include <gtest/gtest.h>

#include <QTableView>
#include <QToolButton>
#include <random>

#include "tests/unit/viewer/user.h"
#include "viewer/panels/findings_bar.h"
#include "viewer/panels/table_panel.h"

namespace paceline::viewer {
namespace {

class NewUser : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr int ranks = 64, iterations = 40;

  int below(int end) { return std::uniform_int_distribution(0, end - 1)(random_); }
  // All ranks are alike but for what the test changes.
  static SimulatedRun plain() {
    return {.ranks = ranks, .iterations = iterations, .layers = false, .hosts = 8, .slow_rank = -1};
  }
  static std::shared_ptr<const viewer::Run> run_of(const SimulatedRun& what) {
    return index_run("unknown", simulate(what));
  }
  // The first finding in the bar that begins with the word.
  static QToolButton* finding(User& user, const QString& word) {
    for (QToolButton* button : user.page->findChild<FindingsBar*>()->findChildren<QToolButton*>()) {
      if (button->isVisible() && button->accessibleName().startsWith(word)) return button;
    }
    return nullptr;
  }

  std::mt19937 random_{GetParam()};
};

TEST_P(NewUser, FindsTheSlowRankWithOneClick) {
  SimulatedRun what = plain();
  what.slow_rank = below(ranks);
  what.slowness = 1.2;
  User user(run_of(what), {1920, 1080});
  QToolButton* rank = finding(user, "Rank ");
  ASSERT_NE(rank, nullptr);
  QTest::mouseClick(rank, Qt::LeftButton);
  EXPECT_TRUE(user.state().arrangement.pinned(static_cast<std::size_t>(what.slow_rank))) << what.slow_rank;
  EXPECT_EQ(user.timeline->rows().ranks().front().rank, static_cast<std::size_t>(what.slow_rank));
}

TEST_P(NewUser, FindsTheSlowIterationWithOneClick) {
  SimulatedRun what = plain();
  what.slow_iteration = 5 + below(iterations - 6);  // not in the warm-up, which the report leaves out
  User user(run_of(what), {1920, 1080});
  QToolButton* iteration = finding(user, "Iteration ");
  ASSERT_NE(iteration, nullptr);
  QTest::mouseClick(iteration, Qt::LeftButton);
  const TimeRange slow = *user.state().time.range_of_iterations(what.slow_iteration, what.slow_iteration);
  EXPECT_LE(user.view().begin_ns, slow.begin_ns);
  EXPECT_GE(user.view().end_ns, slow.end_ns);
  EXPECT_LT(user.length(), 2 * slow.length()) << "no other iteration is as large on screen";
}

TEST_P(NewUser, FindsTheCollectiveThatWasWaitedForLongestWithAKeyAndAClick) {
  SimulatedRun what = plain();
  what.late_iteration = 1 + below(iterations - 1);
  what.late_rank = below(ranks);
  what.late_ns = 60e6;
  User user(run_of(what), {1920, 1080});
  user.press("Alt+3");
  auto* panel = dynamic_cast<TablePanel*>(user.page->findChild<QDockWidget*>("Collectives")->widget());
  ASSERT_NE(panel, nullptr);
  QTableView& view = panel->view();
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.visualRect(view.model()->index(0, 0)).center());
  user.finish();
  const viewer::Run& run = user.page->run();
  const TimeRange late = *user.state().time.range_of_iterations(what.late_iteration, what.late_iteration);
  const auto selected = user.state().selection.slice();
  ASSERT_TRUE(selected) << "the click selects a call";
  const double start = double(slices_of(run, *selected).start_ns[selected->slice]);
  EXPECT_GE(start, late.begin_ns);
  EXPECT_LE(start, late.end_ns);
  EXPECT_EQ(user.selected_name(), "MPI_Allreduce");
  const auto titles = panel->model().titles();
  const auto column = titles.indexOf("Last rank");
  ASSERT_GE(column, 0) << titles.join(", ").toStdString();
  EXPECT_EQ(panel->model().texts(0)[column], QString::number(what.late_rank));
}

INSTANTIATE_TEST_SUITE_P(Of, NewUser, testing::Values(1, 2, 3));

}  // namespace
}  // namespace paceline::viewer
