// SPDX-License-Identifier: Apache-2.0
// Two runs on one page: the coupled axes, the alignment by iteration, the table of differences, and how it is opened.
#include <gtest/gtest.h>

#include <QAction>
#include <QSpinBox>
#include <QTabWidget>
#include <QTemporaryDir>
#include <algorithm>
#include <cmath>

#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/viewer/page.h"
#include "viewer/comparison/choose_runs.h"
#include "viewer/panels/iteration_ruler.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace {

std::shared_ptr<const Run> base_run() {
  static const auto run =
      index_run("/runs/base", simulate({.ranks = 2, .iterations = 40, .layers = false, .slowness = 1}));
  return run;
}

// Rank 1's backward takes 1.5 times as long.
std::shared_ptr<const Run> slower_run() {
  static const auto run =
      index_run("/runs/slower", simulate({.ranks = 2, .iterations = 40, .layers = false, .slowness = 1.5}));
  return run;
}

class Comparison : public testing::Test {
 protected:
  explicit Comparison(std::shared_ptr<const viewer::Run> a = base_run(),
                      std::shared_ptr<const viewer::Run> b = slower_run())
      : page(window.show_comparison(std::move(a), std::move(b))) {
    window.resize(1400, 900);
    window.show();
    finish();
  }
  void finish() {
    QTest::qWait(0);
    page->finish();
    QTest::qWait(0);
  }
  const TimeAxis& a() { return page->state_of_a().time.axis(); }
  const TimeAxis& b() { return page->state_of_b().time.axis(); }
  template <class Widget>
  Widget* of_side(int side) {
    return page->findChild<QWidget*>(side == 0 ? "run A" : "run B")->findChild<Widget*>();
  }
  TimelineWidget* timeline(int side) { return of_side<TimelineWidget>(side); }
  // A click into the middle of an iteration in the ruler of run A (0) or B (1).
  void click_iteration(int side, std::int64_t number) {
    auto* ruler = of_side<IterationRuler>(side);
    ViewState& state = side == 0 ? page->state_of_a() : page->state_of_b();
    const auto& all = page->coupling().iterations();
    const auto one = std::ranges::find(all, number, &CommonIteration::number);
    const RunIteration& iteration = side == 0 ? one->a : one->b;
    const double middle = (double(iteration.start_ns) + double(iteration.end_ns)) / 2;
    QTest::mouseClick(ruler, Qt::LeftButton, {},
                      QPoint(state.time.names_width() + int(state.time.axis().x_of(middle)), ruler->height() / 2));
    finish();
  }
  void expect_coupled() {
    const double offset = page->coupling().offset_ns();
    EXPECT_NEAR(b().visible().begin_ns, a().visible().begin_ns + offset, 1e-3);
    EXPECT_NEAR(b().visible().end_ns, a().visible().end_ns + offset, 1e-3);
    EXPECT_EQ(a().width(), b().width()) << "the same number of columns";
    EXPECT_EQ(page->state_of_a().time.names_width(), page->state_of_b().time.names_width());
  }

  Window window;
  ComparisonPage* page;
};

TEST_F(Comparison, AlignsEachIterationToTheNanosecond) {
  ASSERT_EQ(page->coupling().iterations().size(), 40u);
  EXPECT_EQ(page->coupling().aligned_at(), 0);
  for (const CommonIteration& one : page->coupling().iterations()) {
    ASSERT_TRUE(page->coupling().align_at(one.number));
    EXPECT_EQ(page->coupling().offset_ns(), double(one.b.start_ns - one.a.start_ns));
    EXPECT_NEAR(a().x_of(double(one.a.start_ns)), b().x_of(double(one.b.start_ns)), 1e-6) << "the same column";
    expect_coupled();
  }
  EXPECT_FALSE(page->coupling().align_at(4711));
  ASSERT_TRUE(page->coupling().align_at(std::nullopt));
  EXPECT_EQ(page->coupling().offset_ns(), page->state_of_b().run.begin_ns - page->state_of_a().run.begin_ns);
}

TEST_F(Comparison, ZoomsAndPansBothRuns) {
  page->coupling().align_at(20);
  QWidget* below = timeline(1)->viewport();
  const QPoint at(600, 80);
  const double length = a().visible().length();
  QWheelEvent wheel(QPointF(at), below->mapToGlobal(QPointF(at)), QPoint(), QPoint(0, 120), Qt::NoButton,
                    Qt::NoModifier, Qt::NoScrollPhase, false);
  QCoreApplication::sendEvent(below, &wheel);
  EXPECT_LT(a().visible().length(), 0.8 * length) << "the wheel over B zooms A";
  expect_coupled();
  const double begin = b().visible().begin_ns;
  QTest::keyClick(timeline(0), Qt::Key_D);
  EXPECT_GT(b().visible().begin_ns, begin) << "a key over A pans B";
  expect_coupled();
  QTest::keyClick(timeline(1), Qt::Key_F);
  expect_coupled();
  EXPECT_LE(a().visible().begin_ns, page->state_of_a().run.begin_ns);
  EXPECT_GE(b().visible().end_ns, page->state_of_b().run.end_ns) << "the longer run is seen as a whole";
  page->state_of_b().time.set_names_width(333);
  expect_coupled();
  QTest::keyClick(timeline(0), Qt::Key_Backspace);
  expect_coupled();
}

TEST_F(Comparison, SelectsAnIterationInBothRuns) {
  for (const int side : {0, 1}) {
    const std::int64_t number = side == 0 ? 7 : 12;
    click_iteration(side, number);
    const auto& one = *std::ranges::find(page->coupling().iterations(), number, &CommonIteration::number);
    EXPECT_EQ(page->state_of_a().selection.range(), (TimeRange{double(one.a.start_ns), double(one.a.end_ns)}));
    EXPECT_EQ(page->state_of_b().selection.range(), (TimeRange{double(one.b.start_ns), double(one.b.end_ns)}));
    EXPECT_EQ(page->coupling().aligned_at(), number);
    EXPECT_EQ(page->coupling().offset_ns(), double(one.b.start_ns - one.a.start_ns));
    expect_coupled();
  }
  QTest::keyClick(timeline(1), Qt::Key_BracketRight);
  ASSERT_TRUE(page->coupling().aligned_at());
  const auto next = *page->coupling().aligned_at();
  EXPECT_NE(next, 12);
  QTest::keyClick(timeline(1), Qt::Key_BracketLeft);
  EXPECT_EQ(page->coupling().aligned_at(), next - 1);
  expect_coupled();
  auto* field = page->findChild<QSpinBox*>();
  field->setValue(30);
  EXPECT_EQ(page->coupling().aligned_at(), 30);
  field->setValue(field->minimum());
  EXPECT_EQ(page->coupling().aligned_at(), std::nullopt);
  EXPECT_TRUE(page->hint().contains("begin in the same column")) << page->hint().toStdString();
  QTest::keyClick(timeline(0), Qt::Key_Escape);
  EXPECT_FALSE(page->state_of_b().selection.range());
}

// Two runs in tabs: the view and the selection of one of them are taken over to the other one.
TEST(LinkedViews, ShowTheSameTimeOfTheSameIteration) {
  ViewState from(*base_run()), to(*slower_run());
  const auto common = common_iterations(*base_run(), *slower_run());
  const CommonIteration& one = common[20];
  const auto begin = double(one.a.start_ns);
  from.time.show_part({begin + 1e6, begin + 5e6});
  from.selection.select_range(TimeRange{begin + 2e6, begin + 3e6}, {1});
  const auto slices_named = [](const viewer::Run& run, std::size_t number) {
    const auto& slices = run.trace.ranks[1].tracks[0].slices;
    for (std::uint32_t i = 0;; ++i) {
      if (run.trace.name_of(slices, i) == "backward" && number-- == 0)
        return SliceRef{.rank = 1, .track = 0, .slice = i};
    }
  };
  from.selection.select(slices_named(*base_run(), 20));
  follow_selection(from, to);
  const double shift = double(one.b.start_ns - one.a.start_ns);
  EXPECT_NEAR(to.time.axis().visible().begin_ns, begin + 1e6 + shift, 1);
  EXPECT_NEAR(to.time.axis().visible().length(), 4e6, 1);
  EXPECT_NEAR(to.selection.range()->begin_ns, begin + 2e6 + shift, 1);
  EXPECT_EQ(to.selection.ranks(), std::set<std::size_t>{1});
  EXPECT_EQ(to.selection.slice(), slices_named(*slower_run(), 20));
  from.selection.select_range(TimeRange{double(common[7].a.start_ns), double(common[7].a.end_ns)});
  from.selection.select(std::nullopt);
  follow_selection(from, to);
  EXPECT_EQ(to.selection.range(), (TimeRange{double(common[7].b.start_ns), double(common[7].b.end_ns)}))
      << "the iteration, which is longer there";
  const double shift_of_selected = double(common[7].b.start_ns - common[7].a.start_ns);
  EXPECT_GT(shift - shift_of_selected, 1e6);
  EXPECT_NEAR(to.time.axis().visible().begin_ns, begin + 1e6 + shift_of_selected, 1);
  EXPECT_FALSE(to.selection.slice());
}

TEST_F(Comparison, MovesARangeThatIsNoIterationByTheOffset) {
  page->coupling().align_at(3);
  const TimeRange range{a().visible().begin_ns + 1e7, a().visible().begin_ns + 3e7};
  page->state_of_a().selection.select_range(range, {1});
  const auto moved = page->state_of_b().selection.range();
  ASSERT_TRUE(moved);
  EXPECT_NEAR(moved->begin_ns - range.begin_ns, page->coupling().offset_ns(), 1e-3);
  EXPECT_NEAR(moved->length(), 2e7, 1e-3);
  EXPECT_EQ(page->state_of_b().selection.ranks(), std::set<std::size_t>{1}) << "the rank of the same number";
}

TEST_F(Comparison, ListsTheDifferencesOfTheSelectionWithTheVerdict) {
  page->coupling().select_iteration(9);
  finish();
  const TableModel& model = page->table().model();
  const auto row_of = [&](const QString& name) {
    int row = 0;
    while (row < model.rowCount() && model.index(row, 0).data().toString() != name) ++row;
    return row;
  };
  const int row = row_of("backward");
  ASSERT_LT(row, model.rowCount());
  const auto text = [&](int column) { return model.index(row, column).data().toString(); };
  // The mean over the ranks, counted here from the slices alone.
  const auto mean_in = [](const viewer::Run& run, const RunIteration& iteration) {
    double sum = 0;
    for (const analysis::Rank& rank : run.trace.ranks) {
      const auto& slices = rank.tracks[0].slices;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        if (run.trace.name_of(slices, i) != "backward") continue;
        if (slices.start_ns[i] >= iteration.start_ns && slices.start_ns[i] < iteration.end_ns) {
          sum += double(slices.duration_ns[i]);
        }
      }
    }
    return sum / double(run.trace.ranks.size());
  };
  const auto& one = *std::ranges::find(page->coupling().iterations(), 9, &CommonIteration::number);
  const double in_a = mean_in(page->state_of_a().run, one.a), in_b = mean_in(page->state_of_b().run, one.b);
  EXPECT_EQ(text(2), "slower");
  EXPECT_EQ(text(6), "2");
  EXPECT_EQ(text(8), duration_text(std::llround(in_a)));
  EXPECT_EQ(text(9), duration_text(std::llround(in_b)));
  EXPECT_EQ(text(10), "+" + duration_text(std::llround(in_b - in_a)));
  EXPECT_EQ(model.index(row_of("iteration"), 6).data().toString(), "2")
      << "each rank's own iteration, not what of the next one begins before the last rank is done";
  EXPECT_EQ(model.index(row_of("iteration"), 2).data().toString(), "slower") << "the verdict on the step";
  EXPECT_TRUE(page->verdict().contains("slower is slower in this pair of runs: a step takes"))
      << page->verdict().toStdString();
  EXPECT_TRUE(page->table().note().contains("in iteration 9 of A and of B")) << page->table().note().toStdString();
  QTest::keyClick(timeline(0), Qt::Key_Escape);
  finish();
  EXPECT_TRUE(page->table().note().contains("in the whole runs"));
}

TEST_F(Comparison, ShowsTheChangeThatTheVerdictIsAboutWhateverIsSelected) {
  const TableModel& model = page->table().model();
  // Backward takes about 1.25 times as long: 1.5 times on one of the two ranks.
  const auto figures = [&] {
    QStringList figures;
    for (int row = 0; row < model.rowCount(); ++row) {
      if (model.texts(row).front() == "backward") figures = model.texts(row).mid(2, 4);
    }
    return figures;
  };
  page->coupling().select_iteration(9);
  finish();
  const QStringList of_one = figures();
  QTest::keyClick(timeline(0), Qt::Key_Escape);
  finish();
  EXPECT_EQ(figures(), of_one) << "the verdict and its figures are of all iterations";
  ASSERT_EQ(of_one.size(), 4);
  EXPECT_EQ(of_one[0], "slower");
  EXPECT_TRUE(of_one[1].startsWith("+2")) << of_one[1].toStdString();
  const double base = time_from_text(of_one[2]), fresh = time_from_text(of_one[3]);
  EXPECT_NEAR(100 * (fresh / base - 1), of_one[1].mid(1).section(' ', 0, 0).toDouble(), 0.1);
  EXPECT_EQ(page->table().model().titles()[8], "Total in A");
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.texts(row)[0] != "iteration") continue;
    EXPECT_GT(time_from_text(model.texts(row)[8]), 30 * time_from_text(model.texts(row)[4])) << "40 iterations";
  }
}

class WithoutIterations : public Comparison {
 protected:
  WithoutIterations()
      : Comparison(base_run(), index_run("/runs/none", simulate({.ranks = 2, .iterations = 0, .layers = false}))) {}
};

TEST_F(WithoutIterations, AreAlignedAtTheirBegins) {
  EXPECT_EQ(page->coupling().aligned_at(), std::nullopt);
  EXPECT_EQ(page->coupling().offset_ns(), b().whole().begin_ns - a().whole().begin_ns);
  EXPECT_TRUE(page->hint().startsWith("Run B has no iterations")) << page->hint().toStdString();
  EXPECT_TRUE(page->verdict().contains("compared by totals, which are not tested")) << page->verdict().toStdString();
  EXPECT_FALSE(page->findChild<QSpinBox*>()->isEnabled());
  EXPECT_GT(page->table().model().rowCount(), 3);
  for (int row = 0; row < page->table().model().rowCount(); ++row) {
    EXPECT_EQ(page->table().model().texts(row)[4], "") << "nothing is per iteration";
  }
  QTest::keyClick(timeline(1), Qt::Key_W);
  expect_coupled();
}

TEST(ComparisonWindow, OpensTwoRunsBesideTheUiThread) {
  QTemporaryDir directory;
  const QString a = directory.path() + "/a", b = directory.path() + "/b";
  analysis::write_run(simulate({.ranks = 2, .iterations = 5, .layers = false}), a.toStdString());
  analysis::write_run(simulate({.ranks = 1, .iterations = 4, .layers = false}), b.toStdString());
  Window window;
  window.show();
  window.open(a);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.current_page() != nullptr; }, 20'000));
  const viewer::Run* loaded = &window.current_page()->run();
  ComparisonPage* page = nullptr;
  window.compare(a, b, [&](ComparisonPage& opened) { page = &opened; });
  ASSERT_TRUE(QTest::qWaitFor([&] { return page != nullptr; }, 20'000));
  EXPECT_EQ(&page->state_of_a().run, loaded) << "the open run is not loaded again";
  EXPECT_EQ(window.current_tab(), page);
  EXPECT_TRUE(window.windowTitle().startsWith("a and b"));
  EXPECT_EQ(page->coupling().iterations().size(), 4u);
  page->finish();
}

TEST(ComparisonWindow, NamesTheRunThatCannotBeOpened) {
  Window window;
  window.show();
  window.compare("/no/such/run", "/nor/this");
  auto* tabs = window.findChild<QTabWidget*>();
  const auto shows = [&] {
    const auto labels = tabs->currentWidget()->findChildren<QLabel*>();
    return std::ranges::any_of(labels, [](QLabel* label) {
      return label->text().contains("could not be compared") && label->text().contains("/no/such/run");
    });
  };
  EXPECT_TRUE(QTest::qWaitFor(shows, 20'000));
}

TEST(ComparisonWindow, AsksForTwoRuns) {
  ChooseRuns dialog({"/runs/a", "/runs/b"});
  EXPECT_EQ(dialog.a(), "/runs/a");
  EXPECT_EQ(dialog.b(), "/runs/b");
  auto* compare = dialog.findChild<QPushButton*>();
  for (auto* button : dialog.findChildren<QPushButton*>()) {
    if (button->text() == "Compare") compare = button;
  }
  EXPECT_TRUE(compare->isEnabled());
  dialog.findChildren<QComboBox*>().at(1)->setEditText(" ");
  EXPECT_FALSE(compare->isEnabled());
  const auto actions = action_table();
  EXPECT_TRUE(std::ranges::any_of(actions, [](const Action& action) {
    return action.window == WindowAction::compare_runs && *action.menu != '\0' && *action.keys != '\0';
  }));
}

}  // namespace
}  // namespace paceline::viewer
