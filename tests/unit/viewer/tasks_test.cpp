// SPDX-License-Identifier: Apache-2.0
// What people ask of a run every day, with mouse and keys sent to the window. Each action is counted: a click, a key, a
// text that is typed, or a drag. No task takes more than three. PACELINE_PICTURES=FOLDER keeps a picture of each end.
#include <gtest/gtest.h>

#include <QLineEdit>
#include <QTableView>
#include <QToolButton>
#include <algorithm>
#include <cstdlib>

#include "tests/unit/viewer/user.h"
#include "viewer/comparison/choose_runs.h"
#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/columns.h"
#include "viewer/panels/findings_bar.h"
#include "viewer/panels/flame_graph.h"
#include "viewer/panels/table_panel.h"
#include "viewer/window/exports.h"
#include "viewer/window/go_to_dialog.h"

namespace paceline::viewer {
namespace {

class CountedTask {
 public:
  explicit CountedTask(std::shared_ptr<const viewer::Run> run) : user(std::move(run), {1366, 768}) {}
  ~CountedTask() {
    EXPECT_GT(actions_, 0);
    EXPECT_LE(actions_, 3);
    if (const char* folder = std::getenv("PACELINE_PICTURES")) {
      const auto* test = testing::UnitTest::GetInstance()->current_test_info();
      user.finish();
      EXPECT_TRUE(user.window.grab().save(QString("%1/%2.png").arg(folder, test->name())));
    }
  }

  void press(const QString& keys) { ++actions_, user.press(keys); }
  // A click on the finding in the bar, or in its menu, that begins with the word.
  void click_finding(const QString& word) {
    for (QToolButton* button : user.page->findChild<FindingsBar*>()->findChildren<QToolButton*>()) {
      if (!button->isVisible() || !button->accessibleName().startsWith(word)) continue;
      ++actions_;
      QTest::mouseClick(button, Qt::LeftButton);
      return user.finish();
    }
    FAIL() << "no finding begins with " << word.toStdString();
  }
  void click(QPoint point) { ++actions_, user.click(point); }
  void drag(QPoint from, QPoint to, Qt::KeyboardModifiers held) { ++actions_, user.drag(from, to, held); }
  void click_row(const char* panel, int row) {
    ++actions_;
    QTableView& view = table(panel).view();
    QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.visualRect(view.model()->index(row, 0)).center());
    user.finish();
  }
  void type_into(QLineEdit* field, const QString& text) {
    ++actions_;  // the click into the field
    QTest::mouseClick(field, Qt::LeftButton);
    ++actions_;
    QTest::keyClicks(field, text);
    user.finish();
  }
  void count(int actions) { actions_ += actions; }

  TablePanel& table(const char* title) {
    auto* panel = dynamic_cast<TablePanel*>(user.page->findChild<QDockWidget*>(title)->widget());
    EXPECT_TRUE(panel != nullptr && is_seen(panel)) << title;
    return *panel;
  }
  // A cell by the title of its column.
  QString cell(const char* panel, int row, const char* column) {
    const TableModel& model = table(panel).model();
    return model.texts(row).value(model.titles().indexOf(column));
  }

  User user;

 private:
  int actions_ = 0;
};

std::shared_ptr<const viewer::Run> ranks_of_64(int slow_rank, int slow_iteration) {
  return index_run("ranks", simulate({.ranks = 64,
                                      .iterations = 40,
                                      .layers = false,
                                      .hosts = 8,
                                      .slow_rank = slow_rank,
                                      .slowness = 1.2,
                                      .slow_iteration = slow_iteration}));
}

// Two ranks that share a GPU, recorded on an H200.
std::shared_ptr<const viewer::Run> gpu_run() {
  static const auto run = open_run(PACELINE_SOURCE "/tests/data/h200/nccl_two_ranks");
  return run;
}

TEST(Tasks, TheSlowRankOf64) {
  CountedTask task(ranks_of_64(37, -1));
  task.click_finding("Rank ");
  EXPECT_TRUE(task.user.state().arrangement.pinned(37));
}

// The ranges on a stream are known when the stream is first painted, and then the rows below it move.
TEST(Rows, HaveTheHeightOfWhatTheyShow) {
  User user(gpu_run(), {1400, 1000});
  user.finish();
  user.window.grab();
  const RowLayout& rows = user.timeline->rows();
  const auto placed = rows.rows_between(0, user.timeline->viewport()->height());
  std::size_t nested = 0;
  for (const PlacedRow& one : placed) {
    const Row::Height height = one.row->height();
    EXPECT_TRUE(one.row->shown()) << one.row->name().toStdString();
    EXPECT_EQ(one.end_y - one.y, height.levels * rows.level_height() + height.pixels) << one.row->name().toStdString();
    nested += one.row->name().startsWith("ranges of ") && height.levels > 1;
  }
  EXPECT_GT(nested, 0U);
}

// The mean over the ranks of the time in the phase, of what the panel Phases shows.
double phase_ns(User& user, const char* phase) {
  const auto* view = user.page->findChild<BreakdownPanel*>()->findChild<QTableView*>();
  const QAbstractItemModel& model = *view->model();
  for (int column = BreakdownModel::first_phase_column; column < model.columnCount(); ++column) {
    if (model.headerData(column, Qt::Horizontal).toString() != phase) continue;
    return model.index(0, column).data(value_role).toDouble();
  }
  return 0;
}

TEST(Tasks, TheSlowIterationOf40AndItsCause) {
  CountedTask task(ranks_of_64(-1, 23));
  task.click_finding("Iteration 23");
  ASSERT_TRUE(task.user.state().selection.range());
  const double slow = phase_ns(task.user, "backward"), same = phase_ns(task.user, "forward");
  task.press("Esc");  // the whole run, of 40 iterations
  EXPECT_GT(slow, 1.7 * phase_ns(task.user, "backward") / 40);
  EXPECT_LT(same, 1.3 * phase_ns(task.user, "forward") / 40);
}

TEST(Tasks, TheMostExpensiveCollectiveAndItsLastRank) {
  CountedTask task(index_run("late", simulate({.ranks = 64,
                                               .iterations = 40,
                                               .layers = false,
                                               .slow_rank = -1,
                                               .late_iteration = 17,
                                               .late_rank = 9,
                                               .late_ns = 60e6})));
  task.press("Alt+3");
  task.click_row("Collectives", 0);
  EXPECT_EQ(task.user.selected_name(), "MPI_Allreduce");
  EXPECT_EQ(task.cell("Collectives", 0, "Last rank"), "9");
}

TEST(Tasks, TheHiddenCommunicationOfEachRank) {
  CountedTask task(gpu_run());
  task.press("Alt+2");
  for (int row = 0; row < 2; ++row) {
    EXPECT_TRUE(task.cell("Ranks", row, "Hidden").contains('%')) << task.cell("Ranks", row, "Hidden").toStdString();
    const QTableView& view = task.table("Ranks").view();
    const auto column = task.table("Ranks").model().titles().indexOf("Hidden");
    EXPECT_TRUE(view.viewport()->rect().contains(view.visualRect(view.model()->index(row, int(column)))))
        << "it is in view without scrolling";
  }
  EXPECT_TRUE(table_csv(task.table("Ranks").model()).contains(",Hidden (ns),"));
}

TEST(Tasks, TheKernelOfALaunch) {
  CountedTask task(gpu_run());
  User& user = task.user;
  const SliceRef call = user.first_named("cudaLaunchKernel", 0);
  user.state().time.zoom_to(call);  // where the user looks
  user.finish();
  task.click(user.middle_of(call));
  ASSERT_EQ(user.selected_name(), "cudaLaunchKernel");
  task.press("J");
  const SliceRef kernel = *user.state().selection.slice();
  EXPECT_EQ(track_of(user.page->run(), kernel).kind, analysis::TrackKind::stream);
}

TEST(Tasks, TheTotalOfAFunctionOverTheRanks) {
  const auto run = index_run("four", simulate({.ranks = 4, .iterations = 8}));
  CountedTask task(run);
  task.press("Alt+4");
  task.type_into(task.table("Names").findChild<QLineEdit*>(), "OPTIM");
  ASSERT_EQ(task.table("Names").model().rowCount({}), 1);
  EXPECT_EQ(task.cell("Names", 0, "Name"), "optimizer");
  EXPECT_EQ(task.cell("Names", 0, "Count"), "32");
}

TEST(Tasks, TheLengthOfAGap) {
  CountedTask task(four_ranks());
  User& user = task.user;
  const SliceRef before = user.first_named("forward", 1), after = user.first_named("optimizer", 1);
  const analysis::Slices& slices = slices_of(user.page->run(), before);
  const auto gap_begin = double(slices.end_ns(before.slice)), gap_end = double(slices.start_ns[after.slice]);
  user.state().arrangement.set_collapsed(1, false);
  user.state().time.show_part({gap_begin - 1e6, gap_end + 1e6});
  user.finish();
  const int y = user.middle_of(before).y();
  const auto x_of = [&](double ns) { return user.state().time.names_width() + int(user.state().time.axis().x_of(ns)); };
  task.drag({x_of(gap_begin) + 2, y}, {x_of(gap_end) - 2, y}, Qt::ShiftModifier);
  ASSERT_TRUE(user.state().selection.range());
  EXPECT_EQ(user.state().selection.range()->begin_ns, gap_begin) << "the edges snap to the slices";
  EXPECT_EQ(user.state().selection.range()->end_ns, gap_end);
}

TEST(Tasks, AGivenTime) {
  CountedTask task(four_ranks());
  task.user.answer<GoToDialog>([&](GoToDialog& dialog) {
    QTest::keyClicks(dialog.findChild<QLineEdit*>(), "350 ms");
    QTest::keyClick(dialog.findChild<QLineEdit*>(), Qt::Key_Return);
  });
  task.count(2);
  task.press("Ctrl+G");
  EXPECT_EQ(task.user.state().time.marked_time(), 350e6);
}

// Rank 2 of 4 is slow, for which a third of its samples have another function.
TEST(Tasks, WhatDiffersInTheStacksOfARank) {
  analysis::Trace trace = simulate({.ranks = 4,
                                    .iterations = 40,
                                    .layers = false,
                                    .slow_rank = 2,
                                    .slowness = 1.5,
                                    .slow_iteration = 5,
                                    .switch_ns = 500'000});
  add_samples(trace, 1'000'000, [](int rank, std::int64_t time_ns) {
    return rank == 2 && time_ns / 1'000'000 % 3 == 0 ? "augment" : "work";
  });
  CountedTask task(index_run("stacks", std::move(trace)));
  task.click_finding("Rank 2");
  auto* graph = task.user.page->findChild<FlameGraph*>();
  EXPECT_TRUE(is_seen(graph));
  EXPECT_EQ(graph->chart().tree().one, "rank 2");
  EXPECT_EQ(graph->findChild<QLineEdit*>()->text(), "augment");
}

// Both are open in tabs, so the dialog names them already.
TEST(Tasks, TwoComparedRuns) {
  const auto run_of = [](const char* path, double slowness) {
    return index_run(path, simulate({.ranks = 2, .iterations = 40, .layers = false, .slowness = slowness}));
  };
  CountedTask task(run_of("/runs/slower", 1.5));
  User& user = task.user;
  user.window.show_run(run_of("/runs/base", 1));
  user.finish();
  user.answer<ChooseRuns>([](ChooseRuns& dialog) { QTest::keyClick(&dialog, Qt::Key_Return); });
  task.count(1);
  task.press("Ctrl+Alt+C");
  const auto compared = [&] { return dynamic_cast<ComparisonPage*>(user.window.current_tab()); };
  ASSERT_TRUE(QTest::qWaitFor([&] { return compared() != nullptr; }, 20'000));
  compared()->finish();
  EXPECT_TRUE(compared()->verdict().contains("slower is slower")) << compared()->verdict().toStdString();
  const TableModel& model = compared()->table().model();
  int judged = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    const QStringList texts = model.texts(row);
    if (texts[0] == "backward" || texts[0] == "forward") {
      ++judged;
      EXPECT_EQ(texts[2] == "slower", texts[0] == "backward") << texts[2].toStdString();
    }
  }
  EXPECT_EQ(judged, 2);
}

}  // namespace
}  // namespace paceline::viewer
