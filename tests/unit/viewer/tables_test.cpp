// SPDX-License-Identifier: Apache-2.0
// The panels below the timeline that are tables: their figures, their order, and where a click leads to.
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QMenu>
#include <QScrollBar>
#include <QSignalSpy>
#include <QToolButton>
#include <algorithm>
#include <set>

#include "analysis/communication/collectives.h"
#include "analysis/report/outline.h"
#include "analysis/trace/builder.h"
#include "tests/unit/viewer/user.h"
#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/findings_bar.h"
#include "viewer/panels/notes_panel.h"
#include "viewer/panels/search.h"
#include "viewer/panels/sql_console.h"
#include "viewer/panels/table_panel.h"
#include "viewer/session/actions.h"

namespace paceline::viewer {
namespace {

QPoint middle_of(QTableView& view, int row) { return view.visualRect(view.model()->index(row, 0)).center(); }

void click_row(QTableView& view, int row) {
  QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, middle_of(view, row));
}

int row_of(const TableModel& model, const QString& name) {
  for (int row = 0; row < model.rowCount(); ++row) {
    if (model.texts(row).front() == name) return row;
  }
  return -1;
}

class Tables : public Page {};

TEST_F(Tables, AreOpenedByTheActionsOfTheirMenu) {
  int opened = 0;
  for (const Action& action : action_table()) {
    if (QString(action.section) != "Panels" || action.view == nullptr) continue;
    action.view(state());
    finish();
    const QString title = QString(action.text).remove('&');
    const auto* dock = page->findChild<QDockWidget*>(title);
    ASSERT_NE(dock, nullptr) << title.toStdString();
    EXPECT_TRUE(is_seen(dock->widget())) << title.toStdString();
    ++opened;
  }
  EXPECT_EQ(opened, 16);
}

// A duration of 356.2 ms of which the column shows 56.2 ms is worse than none.
void expect_whole_numbers(const QTableView& view) {
  if (view.model() == nullptr) return;  // the console before its first statement
  const QAbstractItemModel& model = *view.model();
  for (int column = 0; column < model.columnCount(); ++column) {
    for (int row = 0; row < model.rowCount(); ++row) {
      const QModelIndex index = model.index(row, column);
      if ((index.data(Qt::TextAlignmentRole).toInt() & Qt::AlignRight) == 0) continue;
      for (const QString& line : index.data().toString().split('\n')) {
        constexpr int margins = 16;
        EXPECT_LE(view.fontMetrics().horizontalAdvance(line) + margins, view.columnWidth(column))
            << view.accessibleName().toStdString() << ": " << line.toStdString();
      }
    }
  }
}

TEST_F(Tables, ShowNumbersWhole) {
  const double end = state().time.axis().whole().end_ns;
  for (const QSize size : {QSize(1024, 700), QSize(1366, 768), QSize(1920, 1080)}) {
    window.resize(size);
    for (const Action& action : action_table()) {
      if (QString(action.section) != "Panels" || action.view == nullptr) continue;
      action.view(state());
      for (const double share : {1e-4, 0.02, 0.9}) {  // figures grow longer after the columns were made
        state().selection.select_range(TimeRange{end * 0.05, end * (0.05 + share)});
        finish();
        for (const auto* view : page->findChildren<QTableView*>()) expect_whole_numbers(*view);
      }
      state().selection.select_range(std::nullopt);
      finish();
    }
  }
}

TEST_F(Tables, KeepTheBarOfPhasesVisible) {
  window.resize(1024, 700);
  auto* panel = open<BreakdownPanel>("Phases");
  EXPECT_GE(panel->findChild<QTableView*>()->columnWidth(BreakdownModel::bar_column), 160);
}

// Columns have no more room than their figures need.
TEST_F(Tables, ShowAllPhasesOfAWideWindow) {
  window.resize(1600, 900);
  const auto* view = open<BreakdownPanel>("Phases")->findChild<QTableView*>();
  ASSERT_GT(view->width(), 900);
  EXPECT_EQ(view->horizontalScrollBar()->maximum(), 0);
}

TEST_F(Tables, KeepTheTabInFrontWhileTheyAreHidden) {
  auto* ranks = open<TablePanel>("Ranks");
  state().arrangement.set_panels_shown(false);
  EXPECT_FALSE(ranks->isVisible());
  state().arrangement.set_panels_shown(true);
  EXPECT_TRUE(ranks->isVisible());
  EXPECT_FALSE(is_seen(page->findChild<BreakdownPanel*>()));
}

TEST_F(Tables, OfRanksHaveTheOneThatMadeOthersWaitFirst) {
  auto* panel = open<TablePanel>("Ranks");
  ASSERT_EQ(panel->model().rowCount(), 4);
  EXPECT_EQ(panel->model().texts(0).front(), "2");
  const QSignalSpy wanted(&state().selection, &Selection::rank_wanted);
  click_row(panel->view(), 0);
  ASSERT_EQ(wanted.count(), 1);
  EXPECT_EQ(wanted[0][0].toULongLong(), 2u);
}

class TablesOfOneRank : public Page {
 protected:
  TablesOfOneRank() : Page(index_run("one", simulate({.ranks = 1, .iterations = 3, .layers = false}))) {}
};

TEST_F(TablesOfOneRank, SayNothingOfWaitsThatNobodyKnows) {
  const TableModel& model = open<TablePanel>("Ranks")->model();
  EXPECT_EQ(model.texts(0)[int(model.titles().indexOf("Waited"))], "–");
  EXPECT_EQ(model.texts(0)[int(model.titles().indexOf("Hidden"))], "–");
}

TEST_F(Tables, OfPhasesLeadToTheRank) {
  auto* panel = open<BreakdownPanel>("Phases");
  const QSignalSpy wanted(&state().selection, &Selection::rank_wanted);
  click_row(*panel->findChild<QTableView*>(), 1);
  ASSERT_EQ(wanted.count(), 1);
  EXPECT_EQ(wanted[0][0].toULongLong(), 1u);
}

TEST_F(Tables, AreSortedByAClickOnATitle) {
  auto* panel = open<TablePanel>("Ranks");
  auto* header = panel->view().horizontalHeader();
  const QPoint title(header->sectionViewportPosition(0) + 5, header->height() / 2);
  QTest::mouseClick(header->viewport(), Qt::LeftButton, {}, title);
  const QString first = panel->model().texts(0).front();
  QTest::mouseClick(header->viewport(), Qt::LeftButton, {}, title);
  EXPECT_NE(panel->model().texts(0).front(), first);
  QStringList ends{first, panel->model().texts(0).front()};
  ends.sort();
  EXPECT_EQ(ends, (QStringList{"0", "3"}));
}

TEST_F(Tables, OfCollectivesLeadToTheLastRank) {
  auto* panel = open<TablePanel>("Collectives");
  const auto found = analysis::match_collectives(page->run().trace);
  ASSERT_EQ(panel->model().rowCount(), std::ssize(found.matched));
  click_row(panel->view(), 0);
  ASSERT_TRUE(state().selection.slice());
  EXPECT_EQ(state().selection.slice()->rank, 2u);
  EXPECT_EQ(slice_title(page->run(), *state().selection.slice()), "MPI_Allreduce");
  const auto& slices = slices_of(page->run(), *state().selection.slice());
  const TimeRange view = state().time.axis().visible();
  EXPECT_LT(view.begin_ns, double(slices.start_ns[state().selection.slice()->slice]));
  EXPECT_GT(view.end_ns, double(slices.end_ns(state().selection.slice()->slice)));
}

TEST_F(Tables, OfNamesCountTheSelectedRangeAndRanks) {
  auto* panel = open<TablePanel>("Names");
  const auto count_of = [&](const QString& name) { return panel->model().texts(row_of(panel->model(), name))[2]; };
  EXPECT_EQ(count_of("backward"), "32");
  const analysis::Iteration& iteration = page->run().index->iterations(1)[3];
  const TimeRange range{double(iteration.start_ns), double(iteration.start_ns + iteration.duration_ns)};
  state().selection.select_range(range, {1});
  finish();
  EXPECT_EQ(count_of("backward"), "1");
  EXPECT_TRUE(panel->note().contains("of 1 rank")) << panel->note().toStdString();
  const int row = row_of(panel->model(), "backward");
  click_row(panel->view(), row);
  EXPECT_EQ(slice_title(page->run(), *state().selection.slice()), "backward");
  EXPECT_EQ(state().selection.slice()->rank, 1u);
}

TEST_F(Tables, OfABoxHaveItsRanksOnly) {
  auto* phases = open<BreakdownPanel>("Phases");
  EXPECT_EQ(phases->table().rowCount(), 4);
  const analysis::Iteration& iteration = page->run().index->iterations(1)[3];
  state().selection.select_range(
      TimeRange{double(iteration.start_ns), double(iteration.start_ns + 2 * iteration.duration_ns)}, {1, 3});
  finish();
  ASSERT_EQ(phases->table().rowCount(), 2);
  EXPECT_EQ(phases->table().index(1, BreakdownModel::rank_column).data(Qt::DisplayRole), "Rank 3");
  EXPECT_TRUE(phases->title().endsWith("of 2 ranks")) << phases->title().toStdString();
  const TableModel& path = open<TablePanel>("Critical path")->model();
  const int others = path.rowCount();
  for (int row = 0; row < others; ++row) EXPECT_NE(path.texts(row)[2], "2") << "the slow rank";
  state().selection.select_range(state().selection.range());
  finish();
  EXPECT_GT(path.rowCount(), others);
}

// One collective of ranks 0 and 1, and one of ranks 2 and 3.
std::shared_ptr<const Run> two_groups() {
  analysis::TraceBuilder builder;
  for (int rank = 0; rank < 4; ++rank) {
    analysis::TrackBuilder& main = builder.add_rank(rank, 4).add_main_thread();
    main.add_slice(100 * rank, 1000, "MPI_Allreduce", "mpi", "collective");
    main.text_argument("communicator", rank < 2 ? "first" : "second");
  }
  return index_run("groups", builder.finish());
}

class TablesOfTwoGroups : public Page {
 protected:
  TablesOfTwoGroups() : Page(two_groups()) {}
};

TEST_F(TablesOfTwoGroups, HaveTheCollectivesOfTheRanksInTheBox) {
  auto* panel = open<TablePanel>("Collectives");
  EXPECT_EQ(panel->model().rowCount(), 2);
  state().selection.select_range(TimeRange{0, 2000}, {0});
  finish();
  ASSERT_EQ(panel->model().rowCount(), 1);
  EXPECT_EQ(panel->model().texts(0)[1], "first");
}

TEST_F(Tables, ComputeNothingWhileTheyAreNotSeen) {
  auto* panel = page->findChild<QDockWidget*>("Names")->findChild<QTableView*>();
  state().selection.select_range(TimeRange{0, 1e6});
  finish();
  EXPECT_EQ(panel->model()->rowCount(), 0);
}

TEST_F(Tables, OfTheCriticalPathCoverItsTime) {
  auto* panel = open<TablePanel>("Critical path");
  ASSERT_GT(panel->model().rowCount(), 3);
  ASSERT_TRUE(page->document().report());
  const auto& path = page->document().report()->runs.front().critical_path;
  ASSERT_TRUE(path);
  EXPECT_TRUE(panel->note().startsWith(QString("%1 stretches").arg(panel->model().rowCount())));
  click_row(panel->view(), 0);
  ASSERT_TRUE(state().selection.slice()) << "the longest stretch is work in a slice";
  EXPECT_EQ(state().selection.slice()->rank, 2u) << "the slow rank decides";
}

TEST_F(Tables, WithoutMessagesAreEmpty) {
  auto* panel = open<TablePanel>("Messages");
  EXPECT_EQ(panel->model().rowCount(), 0);
  EXPECT_EQ(panel->note(), "0 messages in the whole run");
}

TEST_F(Tables, OfSqlShowTheResultAndLeadToSlices) {
  auto* console = open<SqlConsole>("SQL");
  console->editor().setPlainText("SELECT rank, name, id FROM slices WHERE name = 'forward' AND rank = 1");
  QTest::keyClick(&console->editor(), Qt::Key_Return, Qt::ControlModifier);
  finish();
  EXPECT_EQ(console->status(), "8 rows");
  ASSERT_EQ(console->view().model()->rowCount(), 8);
  click_row(console->view(), 0);
  ASSERT_TRUE(state().selection.slice());
  EXPECT_EQ(*state().selection.slice(), first_named("forward", 1));
  console->editor().setPlainText("SELECT x FROM nowhere");
  console->run();
  finish();
  EXPECT_TRUE(console->status().contains("nowhere")) << console->status().toStdString();
  EXPECT_EQ(console->view().model()->rowCount(), 8) << "the result before stays";
}

TEST_F(Tables, OfSqlKeepTheFirstTenThousandRows) {
  auto* console = open<SqlConsole>("SQL");
  console->editor().setPlainText(
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000) SELECT x FROM n");
  console->run();
  finish();
  EXPECT_EQ(console->status(), "the first 10,000 rows");
}

TEST_F(Tables, OfSqlStopAStatementThatWouldNotEnd) {
  auto* console = open<SqlConsole>("SQL");
  console->editor().setPlainText(
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n");
  console->run();
  QTest::qWait(20);
  console->stop();
  finish();
  EXPECT_EQ(console->status(), "stopped");
}

TEST_F(Tables, OfHitsListWhatTheSearchFound) {
  auto* panel = open<TablePanel>("Hits");
  EXPECT_EQ(panel->model().rowCount(), 0);
  auto* search = page->findChild<SearchBar*>();
  search->findChild<QLineEdit*>()->setText("backward");
  search->step(1);
  finish();
  EXPECT_EQ(panel->model().rowCount(), 32);
  EXPECT_EQ(panel->note(), "32 hits");
  click_row(panel->view(), 3);
  EXPECT_EQ(slice_title(page->run(), *state().selection.slice()), "backward");
}

TEST_F(Tables, OfNotesEditTheTextsOfBookmarks) {
  auto* panel = open<NotesPanel>("Notes");
  state().time.toggle_bookmark(2e8);
  ASSERT_EQ(panel->rowCount(), 1);
  panel->item(0, NotesPanel::text_column)->setText("the loader stalls");
  ASSERT_EQ(state().time.bookmarks().size(), 1u);
  EXPECT_EQ(state().time.bookmarks()[0].text, "the loader stalls");
  state().time.show_part({3e8, 4e8});
  Q_EMIT panel->cellClicked(0, 0);
  EXPECT_LT(state().time.axis().visible().begin_ns, 2e8);
  EXPECT_GT(state().time.axis().visible().end_ns, 2e8);
}

TEST_F(Page, TheBarLeadsWithTheVerdictAndHasTheChangeToMakeFirst) {
  EXPECT_FALSE(page->document().insight()->verdict.isEmpty());
  ASSERT_TRUE(page->document().report());
  const analysis::ReportVerdict& report = page->document().report()->verdict;
  const QString verdict = QString::fromStdString(report.state), change = QString::fromStdString(report.change);
  const auto buttons = page->findChild<FindingsBar*>()->findChildren<QToolButton*>();
  const auto with = [&](const QString& details) {
    return std::ranges::find(buttons, details, &QToolButton::accessibleDescription);
  };
  ASSERT_NE(with(verdict), buttons.end());
  EXPECT_TRUE(verdict.startsWith((*with(verdict))->accessibleName()));
  ASSERT_NE(with(change), buttons.end());
  (*with(change))->click();
  EXPECT_TRUE(is_seen(page->findChild<QDockWidget*>("What-if")->widget()));
}

bool has_colour(const QIcon& icon) {
  const QImage image = icon.pixmap(32, 24).toImage();
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      if (image.pixelColor(x, y).saturation() > 100) return true;
    }
  }
  return false;
}

// Samples and the cause of slow iterations come with more reasons.
TEST(FindingsBar, ListsTheReasonsOfTheReportInItsOrder) {
  for (const auto& run : {four_ranks(), index_run("many", simulate({.ranks = 16,
                                                          .iterations = 40,
                                                          .slow_rank = 3,
                                                          .slowness = 1.3,
                                                          .slow_iteration = 23,
                                                          .switch_ns = 2'000'000}))}) {
    User user(run);
    const analysis::Report& report = *user.page->document().report();
    QStringList in_report, in_bar, in_menu;
    for (const analysis::Finding& reason : analysis::outline_of(report, analysis::Table::Place::documents).reasons) {
      in_report << QString::fromStdString(analysis::reason_prefix(report, reason) + reason.text);
    }
    auto* bar = user.page->findChild<FindingsBar*>();
    for (int i = 0; i < bar->layout()->count(); ++i) {
      auto* button = dynamic_cast<QToolButton*>(bar->layout()->itemAt(i)->widget());
      if (button == nullptr || button->menu() != nullptr) continue;
      in_menu << button->accessibleName();
      if (!in_bar.endsWith(button->accessibleDescription())) in_bar << button->accessibleDescription();
    }
    EXPECT_EQ(in_bar.value(0), QString::fromStdString(report.verdict.state));
    EXPECT_GE(in_report.size(), 3);
    EXPECT_EQ(in_bar.mid(1, in_report.size()), in_report);
    const auto* all = bar->findChild<QMenu*>();
    ASSERT_NE(all, nullptr);
    QStringList entries;
    for (const QAction* action : all->actions()) entries << QString(action->text()).replace("&&", "&");
    EXPECT_EQ(entries, in_menu) << "the menu lists all in the same order";
    const auto reasons = analysis::outline_of(report, analysis::Table::Place::documents).reasons;
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      EXPECT_EQ(has_colour(all->actions()[static_cast<qsizetype>(1 + i)]->icon()),
                reasons[i].severity != analysis::Severity::info)
          << "it warns where the report does: " << reasons[i].text;
    }
  }
}

// The verdict on a run that broke is the first sentence of a finding, which leads to the place.
TEST(FindingsBar, HasASentenceOnce) {
  analysis::Trace trace = simulate({.ranks = 2, .iterations = 4, .layers = false});
  trace.ranks[1].ended = false;
  User user(index_run("broken", std::move(trace)));
  auto* bar = user.page->findChild<FindingsBar*>();
  std::vector<QToolButton*> first;
  for (auto* button : bar->findChildren<QToolButton*>()) {
    if (button->accessibleName().startsWith("Rank 1 did not end by itself")) first.push_back(button);
  }
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(first.front()->isVisibleTo(bar));
  EXPECT_EQ(bar->layout()->itemAt(0)->widget(), first.front());
  first.front()->click();
  const auto seen = user.view();
  EXPECT_NEAR(seen.end_ns, double(user.page->run().trace.ranks[1].end_ns), 0.3e8);
  EXPECT_LT(seen.end_ns - seen.begin_ns, 1.6e8);
  EXPECT_TRUE(user.state().arrangement.pinned(1));
}

// Also of those that have no room in the bar.
TEST_F(Page, AFindingInTheMenuHasALink) {
  auto* all = page->findChild<FindingsBar*>()->findChild<QMenu*>();
  const auto links = [&](QAction* entry) {
    Q_EMIT all->customContextMenuRequested(all->actionGeometry(entry).center());
    QList<QAction*> found;
    for (const auto* menu : all->findChildren<QMenu*>()) found += menu->actions();
    return found;
  };
  all->adjustSize();
  const auto entries = all->actions();
  ASSERT_TRUE(entries.front()->toolTip().contains("A step takes"));
  EXPECT_TRUE(links(entries.front()).isEmpty()) << "the verdict leads to the report";
  const auto finding = std::ranges::find_if(entries, [](const QAction* entry) { return entry->data().isValid(); });
  ASSERT_NE(finding, entries.end());
  const auto link = links(*finding);
  ASSERT_EQ(link.size(), 1);
  EXPECT_TRUE(link.front()->text() == "Copy a link to this place");
  link.front()->trigger();
  EXPECT_TRUE(QApplication::clipboard()->text().startsWith("paceline:/"));
}

TEST_F(Page, TheBarGivesTheVerdictTheRoomThatItNeeds) {
  auto* bar = page->findChild<FindingsBar*>();
  const auto buttons = bar->findChildren<QToolButton*>();
  const QString verdict = QString::fromStdString(page->document().report()->verdict.state);
  const auto first = std::ranges::find(buttons, verdict, &QToolButton::accessibleDescription);
  ASSERT_NE(first, buttons.end());
  for (const int width : {300, 500, 700, 800, 900, 1000}) {
    bar->resize(width, bar->height());
    int used = 0, shown = 0;
    for (const QToolButton* button : buttons) {
      used += button->isVisibleTo(bar) ? button->sizeHint().width() : 0;
      shown += button->isVisibleTo(bar);
    }
    EXPECT_TRUE((*first)->isVisibleTo(bar)) << width;
    EXPECT_TRUE((*first)->text() == (*first)->accessibleName() || used > width - 100) << width << ": " << used;
    EXPECT_TRUE((*first)->text() == (*first)->accessibleName() || shown <= 2) << width;  // it and "2 more"
  }
  bar->resize(500, bar->height());
  EXPECT_TRUE(verdict.startsWith("A step takes ")) << verdict.toStdString();
  EXPECT_TRUE((*first)->text().startsWith("Communication")) << "without room for all it begins with the reason";
  std::set<QString> tooltips, in_menu;
  for (const QToolButton* button : buttons) {
    if (button->menu() == nullptr) tooltips.insert(button->toolTip());
  }
  for (const QAction* action : bar->findChild<QMenu*>()->actions()) in_menu.insert(action->toolTip());
  EXPECT_TRUE(tooltips == in_menu) << "an entry of the menu has the whole text, too";
}

}  // namespace
}  // namespace paceline::viewer
