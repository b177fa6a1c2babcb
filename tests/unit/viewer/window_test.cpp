// SPDX-License-Identifier: Apache-2.0
// The window around the pages: the palette of actions, saved views, exports, themes, dropped files, and runs that grow.
#include <gtest/gtest.h>

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDropEvent>
#include <QFile>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QTabWidget>
#include <QTemporaryDir>
#include <algorithm>
#include <stdexcept>

#include "profiler/format/error.h"
#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/viewer/page.h"
#include "viewer/drawing/palette.h"
#include "viewer/panels/table_panel.h"
#include "viewer/session/recent_runs.h"
#include "viewer/session/view_file.h"
#include "viewer/window/command_palette.h"
#include "viewer/window/exports.h"
#include "viewer/window/follower.h"
#include "viewer/window/shortcuts.h"

namespace paceline::viewer {
namespace {

// A run with a path that can be written beside.
std::shared_ptr<const Run> run_at(const QString& path) {
  return index_run(path, simulate({.ranks = 4, .iterations = 8, .layers = false}));
}

TEST(Palette, FindsAnActionByWordsAndRunsIt) {
  CommandPalette palette;
  auto* text = palette.findChild<QLineEdit*>();
  auto* list = palette.findChild<QListWidget*>();
  const int all = list->count();
  EXPECT_GT(all, 40);
  QTest::keyClicks(text, "panels heat");
  ASSERT_EQ(list->count(), 1);
  EXPECT_TRUE(list->item(0)->text().contains("Alt+5"));
  QTest::keyClick(text, Qt::Key_Return);
  ASSERT_NE(palette.chosen(), nullptr);
  EXPECT_EQ(palette.chosen()->keys, std::string("Alt+5"));
  EXPECT_EQ(palette.result(), QDialog::Accepted);
}

TEST(Palette, ChoosesNothingWhereNoWordFits) {
  CommandPalette palette;
  QTest::keyClicks(palette.findChild<QLineEdit*>(), "no such action");
  QTest::keyClick(palette.findChild<QLineEdit*>(), Qt::Key_Return);
  EXPECT_EQ(palette.chosen(), nullptr);
}

TEST(ShortcutSheet, FitsAScreenOfASmallLaptopAndScrollsOnASmallerOne) {
  ShortcutSheet sheet;
  sheet.show();
  const auto* area = sheet.findChild<QScrollArea*>();
  const QSize frame = sheet.size() - area->size();
  const QSize whole = area->widget()->sizeHint() + frame;
  EXPECT_LE(whole.width(), 1366);
  EXPECT_LE(whole.height(), 768 - 40) << "below the title of the window";
  for (const QLabel* column : sheet.findChildren<QLabel*>())
    EXPECT_LE(column->heightForWidth(column->width()), column->height());
  const QSize room = sheet.screen()->availableSize();
  ASSERT_LT(room.width(), whole.width()) << "the offscreen screen is small";
  EXPECT_LE(sheet.width(), room.width());
  EXPECT_LE(sheet.height(), room.height());
  EXPECT_GT(area->horizontalScrollBar()->maximum(), 0);
}

TEST(SavedView, BringsEverythingBack) {
  const auto run = run_at("somewhere");
  ViewState before(*run), after(*run);
  before.arrangement.sort_ranks(Arrangement::RankOrder::duration);
  before.arrangement.set_collapsed(1, true);
  before.arrangement.set_pinned(2, true);
  before.arrangement.set_rank_hidden(3, true);
  before.arrangement.hide_rows("loader");
  before.time.set_bookmarks({{.time_ns = 5e6, .text = "here"}});
  before.time.set_names_width(333);
  before.time.show_part({1e8, 2e8});
  before.selection.select_range(TimeRange{1.2e8, 1.4e8}, {0, 2});
  const QByteArray layout = view_from_json(view_to_json(before, "layout"), "test", after);
  EXPECT_EQ(layout, "layout");
  EXPECT_EQ(after.arrangement.rank_order(), Arrangement::RankOrder::duration);
  EXPECT_TRUE(after.arrangement.collapsed(1));
  EXPECT_FALSE(after.arrangement.collapsed(0));
  EXPECT_TRUE(after.arrangement.pinned(2));
  EXPECT_TRUE(after.arrangement.rank_hidden(3));
  EXPECT_TRUE(after.arrangement.hidden_rows().contains("loader"));
  EXPECT_EQ(after.time.bookmarks(), before.time.bookmarks());
  EXPECT_EQ(after.time.names_width(), 333);
  EXPECT_EQ(after.time.axis().visible(), before.time.axis().visible());
  EXPECT_EQ(after.selection.range(), before.selection.range());
  EXPECT_EQ(after.selection.ranks(), before.selection.ranks());
}

TEST(SavedView, IsRefusedWhereItIsDamagedAndIgnoresRanksThatAreNotThere) {
  const auto run = run_at("somewhere");
  ViewState state(*run);
  EXPECT_THROW(view_from_json("{\"schema\": 3", "f", state), Error);
  EXPECT_THROW(view_from_json("[]", "f", state), Error);
  view_from_json(R"({"schema": "paceline.view/1", "pinned": [99, -1, "x", 1], "view_ns": [3], "order": "no"})", "f",
                 state);
  EXPECT_TRUE(state.arrangement.pinned(1));
  EXPECT_EQ(state.time.axis().visible(), state.time.axis().whole());
}

TEST(SavedView, IsBesideTheTraceAndKept) {
  QTemporaryDir directory;
  const auto run = run_at(directory.path() + "/run/");
  EXPECT_EQ(view_file_of(run->path), directory.path() + "/run.paceline-view");
  RunPage page(run);
  page.keep_view();
  EXPECT_FALSE(QFile::exists(view_file_of(run->path))) << "not before the user saves it";
  page.state().arrangement.set_pinned(1, true);
  page.save_view();
  page.state().arrangement.set_pinned(2, true);
  page.keep_view();
  RunPage again(run);
  again.restore_view();
  EXPECT_TRUE(again.state().arrangement.pinned(1));
  EXPECT_TRUE(again.state().arrangement.pinned(2));
  RunPage nowhere(run_at("/no/such/directory/run"));
  EXPECT_THROW(nowhere.save_view(), Error);
}

TEST_F(Page, ExportsTheTableInFront) {
  open<TablePanel>("Ranks");
  QTableView* table = table_in_front(*page);
  ASSERT_NE(table, nullptr);
  const QString csv = table_csv(*table->model());
  EXPECT_TRUE(csv.startsWith("Rank,Host,Wall time (ns),Iterations,Median (ns),")) << csv.toStdString();
  EXPECT_EQ(csv.count("\r\n"), 5);
  const QString collectives = table_csv(open<TablePanel>("Collectives")->model());
  EXPECT_TRUE(collectives.startsWith("Operation,Communicator,Ranks,Size (B),Start (ns),")) << collectives.toStdString();
  EXPECT_TRUE(collectives.contains("Bus bandwidth (B/s)\r\n"));
  EXPECT_THROW(save_table(*table->model(), "/no/such/directory/table.csv"), Error);
}

TEST_F(Page, ExportsAPicture) {
  QTemporaryDir directory;
  save_picture(window, directory.path() + "/window.png");
  EXPECT_EQ(QImage(directory.path() + "/window.png").size(), window.size());
  EXPECT_THROW(save_picture(window, "/no/such/directory/window.png"), Error);
}

TEST_F(Page, ExportsTheSelectionAsATrace) {
  QTemporaryDir directory;
  const QString whole = directory.path() + "/whole", part = directory.path() + "/part";
  const QString filter = trace_filters().front();
  save_trace(page->run(), {}, filter, whole);
  const analysis::Iteration& iteration = page->run().index->iterations(1)[3];
  state().selection.select_range(
      TimeRange{double(iteration.start_ns), double(iteration.start_ns + iteration.duration_ns)}, {1});
  page->export_trace(filter, part);
  finish();
  ASSERT_TRUE(QFile::exists(part));
  EXPECT_GT(QFile(part).size(), 100);
  EXPECT_LT(QFile(part).size(), QFile(whole).size() / 8);
  EXPECT_THROW(save_trace(page->run(), {}, "no such format", whole), Error);
}

TEST_F(Page, CopiesTheCommandThatOpensTheView) {
  state().time.show_part({1e6, 5e8});
  for (QAction* entry : window.findChildren<QAction*>()) {
    if (entry->text() == "Copy the &command of this view") entry->trigger();
  }
  EXPECT_EQ(QApplication::clipboard()->text(), "paceline view four --from 1000000ns --to 500000000ns");
}

TEST_F(Page, TakesDroppedFiles) {
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile("/no/such/run")});
  QDragEnterEvent enter(QPoint(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &enter);
  EXPECT_TRUE(enter.isAccepted());
  QDropEvent drop(QPointF(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &drop);
  EXPECT_EQ(window.findChild<QTabWidget*>()->count(), 2);
}

TEST_F(Page, ChangesTheTheme) {
  const auto choose = [&](const QString& text) {
    for (QAction* entry : window.findChildren<QAction*>()) {
      if (entry->text() == text) entry->trigger();
    }
    finish();
    return Theme::of(window.palette()).dark;
  };
  EXPECT_TRUE(choose("&Dark theme"));
  EXPECT_FALSE(choose("&Light theme"));
}

TEST(Sessions, OpenAgainAsTheyWereLeft) {
  const QTemporaryDir folder;
  const QString runs[] = {folder.path() + "/a", folder.path() + "/b"};
  for (const QString& run : runs) {
    analysis::write_run(simulate({.ranks = 2, .iterations = 4, .layers = false}), run.toStdString());
  }
  const auto opened = [](Window& window, int tabs) {
    auto* pages = window.findChild<QTabWidget*>();
    std::vector<RunPage*> found;
    EXPECT_TRUE(QTest::qWaitFor(
        [&] {
          found.clear();
          for (int i = 0; i < pages->count(); ++i) {
            if (auto* page = qobject_cast<RunPage*>(pages->widget(i))) found.push_back(page);
          }
          return int(found.size()) == tabs;
        },
        20'000));
    return found;
  };
  {
    Window window;
    window.set_remembering(true);
    window.show();
    for (const QString& run : runs) window.open(run);
    const auto pages = opened(window, 2);
    ASSERT_EQ(pages.size(), 2u);
    pages[1]->state().time.set_bookmarks({{.time_ns = 1e8, .text = "here"}});
    window.close();
  }
  Window window;
  window.set_remembering(true);
  window.show();
  window.reopen();
  const auto pages = opened(window, 2);
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0]->run().path, runs[0]);
  EXPECT_EQ(pages[1]->run().path, runs[1]);
  ASSERT_EQ(pages[1]->state().time.bookmarks().size(), 1u);
  EXPECT_EQ(pages[1]->state().time.bookmarks()[0].text, "here");
  EXPECT_TRUE(pages[0]->state().time.bookmarks().empty());
  EXPECT_FALSE(QFile::exists(view_file_of(runs[1]))) << "nothing is written beside the trace";
}

TEST(RecentRuns, OpenFromTheStartPage) {
  const QTemporaryDir folder;
  const QString run = folder.path() + "/again";
  analysis::write_run(simulate({.ranks = 1, .iterations = 2, .layers = false}), run.toStdString());
  remember_run({.paths = {run}});
  Window window;
  window.show();
  QPushButton* again = nullptr;
  for (auto* button : window.findChildren<QPushButton*>()) {
    if (button->toolTip() == run) again = button;
  }
  ASSERT_NE(again, nullptr);
  QTest::mouseClick(again, Qt::LeftButton);
  EXPECT_TRUE(QTest::qWaitFor([&] { return window.current_page() != nullptr; }, 20'000));
}

TEST(RecentRuns, AreTheLatestFirstAndEachOnce) {
  for (int i = 0; i < 12; ++i) remember_run({.paths = {QString("/runs/%1").arg(i)}});
  remember_run({.paths = {"/runs/5"}});
  QStringList runs;
  for (const RunSource& run : recent_runs()) runs << run.path();
  ASSERT_EQ(runs.size(), 10);
  EXPECT_EQ(runs[0], "/runs/5");
  EXPECT_EQ(runs[1], "/runs/11");
  EXPECT_EQ(runs.count("/runs/5"), 1);
}

TEST(Follow, ShowsARunThatGrowsAndStaysAtItsEnd) {
  QTemporaryDir directory;
  const auto write = [&](int iterations) {
    analysis::write_run(simulate({.ranks = 2, .iterations = iterations, .layers = false}),
                        directory.path().toStdString());
  };
  write(3);
  Window window;
  window.show();
  window.follow(directory.path(), 20);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.current_page() != nullptr; }, 20'000));
  RunPage* first = window.current_page();
  const std::uint64_t slices = first->run().slices;
  first->state().arrangement.set_pinned(1, true);
  first->state().time.show_all();
  write(9);
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        RunPage* page = window.current_page();
        return page != nullptr && page->run().slices > slices && page->run().index->iterations(0).size() == 9;
      },
      20'000));
  RunPage* grown = window.current_page();
  EXPECT_TRUE(grown->state().arrangement.pinned(1));
  EXPECT_EQ(grown->state().time.axis().visible(), grown->state().time.axis().whole());
}

TEST(Follow, KeepsAViewThatDoesNotReachTheEnd) {
  const auto shorter = index_run("s", simulate({.ranks = 2, .iterations = 4, .layers = false}));
  const auto longer = index_run("l", simulate({.ranks = 2, .iterations = 8, .layers = false}));
  ViewState before(*shorter), after(*longer);
  before.time.show_part({1e8, 2e8});
  carry_over(before, after);
  EXPECT_EQ(after.time.axis().visible(), before.time.axis().visible());
  before.time.show_part({before.time.axis().whole().end_ns - 1e8, before.time.axis().whole().end_ns});
  carry_over(before, after);
  EXPECT_EQ(after.time.axis().visible().end_ns, after.time.axis().whole().end_ns);
  EXPECT_NEAR(after.time.axis().visible().length(), 1e8, 1);
}

}  // namespace
}  // namespace paceline::viewer
