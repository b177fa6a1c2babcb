// SPDX-License-Identifier: Apache-2.0
// The page of a run with many ranks: folding, order, findings, waits, and keys that lead from rank to rank.
#include <gtest/gtest.h>

#include <QLabel>
#include <QListWidget>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QWheelEvent>
#include <algorithm>
#include <limits>
#include <set>

#include "analysis/trace/builder.h"
#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/viewer/page.h"
#include "viewer/drawing/phase_strip.h"
#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/findings_bar.h"
#include "viewer/panels/iteration_ruler.h"
#include "viewer/panels/overview.h"
#include "viewer/panels/search.h"
#include "viewer/session/loader.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/timeline_widget.h"
#include "viewer/window/loading_page.h"

namespace paceline::viewer {
namespace {

// Rank 7 of 12 is slow, and iteration 13 takes twice as long.
std::shared_ptr<const Run> twelve_ranks() {
  static const auto run = index_run("twelve", simulate({.ranks = 12,
                                                        .iterations = 20,
                                                        .layers = false,
                                                        .hosts = 3,
                                                        .slow_rank = 7,
                                                        .slowness = 1.5,
                                                        .slow_iteration = 13}));
  return run;
}

// A page of such a run in a window on the offscreen screen.
class ManyRanks : public Page {
 protected:
  explicit ManyRanks(QSize size = {1200, 800})
      : Page(twelve_ranks(), size), timeline(page->findChild<TimelineWidget*>()) {}
  void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(timeline, key, modifiers); }
  QPoint name_of(std::size_t rank) const {
    return {60, ruler_height + timeline->rows().rows_of(rank).front().y + 3 - timeline->scroll_y()};
  }

  TimelineWidget* timeline;
};

TEST_F(ManyRanks, StartFoldedAndShareTheRoom) {
  const auto& rows = timeline->rows();
  const int room = timeline->viewport()->height() - ruler_height;
  EXPECT_LE(rows.height(), room) << "no scrolling";
  for (std::size_t rank = 0; rank < 12; ++rank) {
    EXPECT_TRUE(state().arrangement.collapsed(rank));
    const int height = rows.rows_of(rank).front().end_y - rows.rows_of(rank).front().y;
    EXPECT_GE(height, RowLayout::lowest_folded);
    EXPECT_LE(height, RowLayout::highest_folded);
  }
  EXPECT_EQ(timeline->verticalScrollBar()->maximum(), 0);
}

TEST_F(ManyRanks, StandBelowTheNamesOfTheirHostsWhichFold) {
  ASSERT_EQ(state().arrangement.groups().size(), 3u);
  const auto rows = timeline->rows().rows_between(0, timeline->rows().height());
  EXPECT_EQ(rows.size(), 3u + 12u);
  QTest::mouseClick(timeline->viewport(), Qt::LeftButton, {}, {60, ruler_height + rows.front().y + 5});
  EXPECT_TRUE(state().arrangement.groups()[0].folded);
  EXPECT_TRUE(timeline->rows().rows_of(0).empty());
  EXPECT_EQ(timeline->rows().rows().size(), 3u + 8u);
  state().selection.reveal(first_named("forward", 2));
  EXPECT_FALSE(state().arrangement.groups()[0].folded);
  EXPECT_NE(timeline->rows().row_of(first_named("forward", 2)), nullptr);
}

TEST_F(ManyRanks, AreSortedByTheWaitingThatTheyCaused) {
  press(Qt::Key_F);
  state().arrangement.sort_ranks(Arrangement::RankOrder::waiting_caused);
  ASSERT_EQ(state().arrangement.groups().size(), 1u) << "without headings";
  EXPECT_EQ(state().arrangement.groups()[0].ranks[0], 7u);
  EXPECT_EQ(state().arrangement.waiting_caused_ns(7), state().arrangement.most_waiting_caused_ns());
  EXPECT_LT(timeline->rows().rows_of(7).front().y, timeline->rows().rows_of(0).front().y);
  state().arrangement.set_pinned(3, true);
  EXPECT_EQ(state().arrangement.groups()[0].ranks[0], 3u) << "pinned ranks come first";
  EXPECT_TRUE(timeline->tooltip_at(name_of(7)).contains("made others wait"));
  const QPoint strip(name_of(7) + QPoint(state().time.names_width() + 100, 0));
  EXPECT_TRUE(timeline->tooltip_at(strip).contains("Rank 7: ")) << timeline->tooltip_at(strip).toStdString();
}

TEST_F(ManyRanks, TheFindingsLeadToTheSlowIterationAndNameNoRankThatTheReportDoesNotJudge) {
  const auto& findings = page->document().insight()->findings;
  EXPECT_FALSE(page->document().insight()->figures.lateness.judged) << "20 iterations are too few";
  for (const ShownFinding& finding : findings) {
    EXPECT_FALSE(finding.text.contains("arrived last")) << finding.text.toStdString();
  }
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_TRUE(findings[0].text.startsWith("Allreduce and other communication take")) << findings[0].text.toStdString();
  EXPECT_TRUE(findings[1].text.startsWith("On average, a rank waited")) << findings[1].text.toStdString();
  const auto slowest = findings.begin() + 3;  // behind what has a cost
  EXPECT_TRUE(slowest->text.startsWith("Iteration 13 is slow")) << slowest->text.toStdString();
  auto* bar = page->findChild<FindingsBar*>();
  QToolButton* iteration = nullptr;
  for (QToolButton* button : bar->findChildren<QToolButton*>()) {
    if (button->accessibleName() == slowest->text) iteration = button;
  }
  ASSERT_TRUE(iteration);
  EXPECT_TRUE(iteration->isVisible()) << "what leads to a place has room first";
  EXPECT_EQ(bar->height(), 28);
  iteration->click();
  EXPECT_EQ(state().time.axis().visible(), *slowest->range);
  const auto& slow = page->run().index->iterations(7)[13];
  EXPECT_LE(state().time.axis().visible().begin_ns, double(slow.start_ns));
  EXPECT_GE(state().time.axis().visible().end_ns, double(slow.start_ns + slow.duration_ns));
  EXPECT_LT(state().time.axis().visible().length(), 1.6 * double(slow.duration_ns));
  ASSERT_TRUE(state().selection.range());
  EXPECT_LE(state().selection.range()->begin_ns, double(slow.start_ns));
  EXPECT_GE(state().selection.range()->end_ns, double(slow.start_ns + slow.duration_ns));
  EXPECT_LT(state().selection.range()->length(), state().time.axis().visible().length());
}

TEST_F(ManyRanks, ShowWaitingApartFromTheTransfer) {
  const SliceRef call = first_named("MPI_Allreduce", 2);
  const auto& slices = slices_of(page->run(), call);
  const Wait* wait = page->document().insight()->waits[2].of_call(call.track, call.slice, slices.start_ns[call.slice]);
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(wait->for_rank, 7u);
  EXPECT_EQ(wait->end_ns, slices.end_ns(call.slice));
  const auto& late = first_named("MPI_Allreduce", 7);
  EXPECT_EQ(wait->until_ns, slices_of(page->run(), late).start_ns[late.slice]);

  state().selection.reveal(call);
  state().time.zoom_to(call);
  const auto at = [&](double time) {
    const PlacedRow* placed = timeline->rows().row_of(call);
    const auto [top, bottom] = *placed->row->place_of(call, timeline->rows().level_height());
    return QPoint(header_width + static_cast<int>(state().time.axis().x_of(time)),
                  ruler_height - timeline->scroll_y() + placed->y + top + 1);
  };
  const double waiting = double(wait->from_ns + wait->until_ns) / 2,
               transfer = double(wait->until_ns + wait->end_ns) / 2;
  EXPECT_TRUE(timeline->tooltip_at(at(waiting)).contains("for rank 7"));
  state().selection.select(std::nullopt);
  const QImage picture = timeline->viewport()->grab().toImage();
  const QRgb solid = phase_colour(analysis::Phase::communication, Theme::light());
  EXPECT_EQ(picture.pixel(at(transfer)), solid);
  EXPECT_NE(picture.pixel(at(waiting)), solid);
}

TEST_F(ManyRanks, AreFirstSeenFromTheFirstIterationToTheLast) {
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max(), end_ns = 0;
  for (std::size_t rank = 0; rank < page->run().ranks.size(); ++rank) {
    const auto& iterations = page->run().index->iterations(rank);
    begin_ns = std::min(begin_ns, iterations.front().start_ns);
    end_ns = std::max(end_ns, iterations.back().start_ns + iterations.back().duration_ns);
  }
  const TimeRange view = state().time.axis().visible();
  const double margin = 0.02 * view.length();
  EXPECT_LT(view.begin_ns, double(begin_ns));
  EXPECT_GT(view.begin_ns, double(begin_ns) - margin) << "without most of the start-up";
  EXPECT_GT(view.end_ns, double(end_ns));
  EXPECT_LT(view.end_ns, double(end_ns) + margin);
}

TEST_F(ManyRanks, HaveARulerOfIterationsThatSelects) {
  auto* ruler = page->findChild<IterationRuler*>();
  ASSERT_NE(ruler, nullptr);
  EXPECT_EQ(ruler->height(), 18);
  const auto& iterations = page->run().iterations;
  ASSERT_EQ(iterations.size(), 20u);
  EXPECT_EQ(iterations[13].number, 13);
  const double middle = double(iterations[13].start_ns + iterations[13].end_ns) / 2;
  const QPoint at(header_width + static_cast<int>(state().time.axis().x_of(middle)), 9);
  QTest::mouseClick(ruler, Qt::LeftButton, {}, at);
  ASSERT_TRUE(state().selection.range());
  EXPECT_EQ(*state().selection.range(), (TimeRange{double(iterations[13].start_ns), double(iterations[13].end_ns)}));
  const QImage picture = ruler->grab().toImage();
  const auto colour_of = [&](std::size_t i) {
    return picture.pixel(header_width + static_cast<int>(state().time.axis().x_of(double(iterations[i].start_ns))) + 3,
                         3);
  };
  EXPECT_NE(colour_of(13), colour_of(12)) << "the slow one is darker";
  EXPECT_LT(qGray(colour_of(13)), qGray(colour_of(12)));
}

TEST_F(ManyRanks, AreReachedByKeys) {
  state().selection.reveal(first_named("backward", 4));
  press(Qt::Key_Down, Qt::ControlModifier);
  ASSERT_TRUE(state().selection.slice());
  EXPECT_EQ(state().selection.slice()->rank, 5u);
  EXPECT_EQ(slice_title(page->run(), *state().selection.slice()), "backward");
  press(Qt::Key_Up, Qt::ControlModifier);
  EXPECT_EQ(state().selection.slice()->rank, 4u);
  press(Qt::Key_Down, Qt::ShiftModifier);
  EXPECT_NE(state().selection.slice()->track, 0u) << "the thread below";
  EXPECT_EQ(state().selection.slice()->rank, 4u);
  press(Qt::Key_Up, Qt::ShiftModifier);
  EXPECT_EQ(state().selection.slice()->track, 0u);
  press(Qt::Key_P);
  EXPECT_TRUE(state().arrangement.pinned(4));
}

TEST_F(ManyRanks, TabLeavesTheTable) {
  auto* table = page->findChild<BreakdownPanel*>()->findChild<QTableView*>();
  window.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&window));
  table->setFocus();
  ASSERT_TRUE(table->hasFocus());
  QTest::keyClick(table, Qt::Key_Tab);
  EXPECT_FALSE(table->hasFocus());
}

TEST_F(ManyRanks, TheColumnOfNamesCanBeWidened) {
  const int width = state().time.axis().width();
  QTest::mousePress(timeline->viewport(), Qt::LeftButton, {}, {header_width, 100});
  QMouseEvent move(QEvent::MouseMove, QPointF(300, 100), timeline->viewport()->mapToGlobal(QPointF(300, 100)),
                   Qt::NoButton, Qt::LeftButton, {});
  QCoreApplication::sendEvent(timeline->viewport(), &move);
  QTest::mouseRelease(timeline->viewport(), Qt::LeftButton, {}, {300, 100});
  EXPECT_EQ(state().time.names_width(), 300);
  EXPECT_EQ(state().time.axis().width(), width - (300 - header_width));
}

TEST_F(ManyRanks, TheWheelScrollsWithCtrlAndShift) {
  state().arrangement.set_all_collapsed(false);
  const TimeRange view = state().time.axis().visible();
  for (const auto& [modifiers, scrolls] :
       {std::pair(Qt::AltModifier | Qt::NoModifier, false), std::pair(Qt::ControlModifier | Qt::ShiftModifier, true)}) {
    timeline->verticalScrollBar()->setValue(0);
    state().time.show_part(view);
    QWheelEvent event({600, 200}, timeline->viewport()->mapToGlobal(QPointF(600, 200)), {}, {0, -120}, Qt::NoButton,
                      modifiers, Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(timeline->viewport(), &event);
    EXPECT_EQ(timeline->verticalScrollBar()->value() > 0, scrolls);
    EXPECT_EQ(state().time.axis().visible() == view, scrolls);
  }
}

TEST_F(ManyRanks, TheNameOfTheRankInViewStaysInSight) {
  state().arrangement.set_collapsed(0, false);
  state().arrangement.set_all_counters_unfolded(true);
  state().arrangement.set_all_collapsed(false);
  const auto& first = timeline->rows().rows_of(0).front();
  timeline->verticalScrollBar()->setValue(first.end_y + 10);
  const QImage picture = timeline->viewport()->grab().toImage();
  const QRect name(26, ruler_height + 1, 60, 18);
  int ink = 0;
  for (int y = name.top(); y < name.bottom(); ++y) {
    for (int x = name.left(); x < name.right(); ++x) ink += qGray(picture.pixel(x, y)) < 90;
  }
  EXPECT_GT(ink, 20);
}

TEST_F(ManyRanks, AreFilteredByARegularExpression) {
  state().arrangement.set_all_collapsed(false);
  const std::size_t rows = timeline->rows().rows().size();
  auto* search = page->findChild<SearchBar*>();
  auto* field = search->findChild<QLineEdit*>();
  QToolButton* filter = nullptr;
  for (QToolButton* button : search->findChildren<QToolButton*>()) {
    if (button->text() == "Filter") filter = button;
  }
  ASSERT_NE(filter, nullptr);
  field->setText("^MPI_All.*e$");
  filter->click();
  page->document().background().finish();
  ASSERT_FALSE(state().arrangement.shown_kinds().empty());
  EXPECT_EQ(timeline->rows().rows().size(), rows - 12) << "the threads that only load data are hidden";
  timeline->grab();
  page->document().background().finish();
  timeline->grab();
  const SliceRef call = first_named("MPI_Allreduce", 0);
  const PlacedRow* row = timeline->rows().row_of(call);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->row->place_of(call, 20)->first, row->row->height().pixels) << "on the first level";
  EXPECT_FALSE(row->row->place_of(first_named("forward", 0), 20)) << "filtered out";
  field->setText("[");
  filter->click();
  filter->click();
  EXPECT_FALSE(filter->isChecked()) << "not a regular expression";
  field->clear();
  EXPECT_TRUE(state().arrangement.shown_kinds().empty());
  EXPECT_EQ(timeline->rows().rows().size(), rows);
}

class SixtyFourRanks : public Page {
 protected:
  SixtyFourRanks()
      : Page(index_run("sixty-four", simulate({.ranks = 64, .iterations = 10, .layers = false, .hosts = 8})),
             {1920, 1080}) {}
};

TEST_F(SixtyFourRanks, AreSeenAtOnceBesideThePanels) {
  auto* timeline = page->findChild<TimelineWidget*>();
  EXPECT_EQ(window.size(), QSize(1920, 1080));
  for (const char* open : {"Phases", "Details"}) {
    auto* dock = page->findChild<QDockWidget*>(open);
    EXPECT_TRUE(is_seen(dock->widget())) << open;
    EXPECT_GE(dock->height(), 200) << open;
  }
  EXPECT_EQ(timeline->verticalScrollBar()->maximum(), 0) << "no scrolling";
  const int room = timeline->viewport()->height() - ruler_height;
  EXPECT_LE(timeline->rows().height(), room);
  for (std::size_t rank = 0; rank < 64; ++rank) {
    ASSERT_EQ(timeline->rows().rows_of(rank).size(), 1u);
    const PlacedRow& row = timeline->rows().rows_of(rank).front();
    EXPECT_TRUE(row.folded);
    EXPECT_GE(row.end_y - row.y, RowLayout::lowest_folded);
    EXPECT_LE(row.end_y - row.y, RowLayout::highest_folded);
    EXPECT_LE(row.end_y, room);
  }
}

class LowWindow : public ManyRanks {
 protected:
  LowWindow() : ManyRanks({800, 500}) {}
};

TEST_F(LowWindow, LeavesTheRoomToTheTimeline) {
  EXPECT_EQ(window.size(), QSize(800, 500)) << "nothing forces the window to be larger";
  EXPECT_GE(timeline->height(), 200);
  EXPECT_FALSE(page->findChild<BreakdownPanel*>()->isVisible());
  state().arrangement.set_panels_shown(true);
  EXPECT_TRUE(page->findChild<BreakdownPanel*>()->isVisible());
}

TEST_F(LowWindow, NumbersSomeIterationsWhereNotAllNumbersFit) {
  auto* ruler = page->findChild<IterationRuler*>();
  // How many pixels of text are where the number of this iteration begins.
  const auto ink_of = [&](std::size_t i) {
    const QImage picture = ruler->grab().toImage();
    const double start = double(page->run().iterations[i].start_ns);
    const int left = state().time.names_width() + static_cast<int>(state().time.axis().x_of(start));
    int ink = 0;
    for (int x = left + 3; x < left + 10; ++x) {
      for (int y = 2; y < 16; ++y) ink += qGray(picture.pixel(x, y)) < 100;
    }
    return ink;
  };
  EXPECT_GT(ink_of(10), 5);
  EXPECT_GT(ink_of(11), 5);
  state().time.set_names_width(400);  // less than 20 pixels for each iteration
  EXPECT_GT(ink_of(10), 5);
  EXPECT_EQ(ink_of(11), 0);
}

TEST(WindowSize, IsAtMostThatOfTheScreen) {
  EXPECT_EQ(Window::fitting({1600, 900}, {1920, 1080}), QSize(1600, 900));
  EXPECT_EQ(Window::fitting({1600, 900}, {960, 540}), QSize(960, 500)) << "a scale of 2";
}

TEST(Overview, ShowsEveryRankOfALargeRun) {
  analysis::TraceBuilder builder;
  for (int r = 0; r < 100; ++r) {
    analysis::RankBuilder& rank = builder.add_rank(r, 100);
    rank.info().end_ns = 1000;
    rank.add_main_thread().add_slice(0, 1000, r < 96 ? "forward" : "evaluate");
  }
  const auto run = index_run("hundred", builder.finish());
  Document document(run);
  ViewState state(*run);
  state.time.set_width(400);
  Overview overview(document, state.time);
  overview.resize(600, overview.sizeHint().height());
  overview.grab();
  document.background().finish();
  EXPECT_LE(overview.sizeHint().height(), 82);
  ASSERT_EQ(overview.image().height(), overview.strips() * 2);
  const Theme theme = Theme::light();
  EXPECT_EQ(overview.image().pixel(200, 0), phase_colour(analysis::Phase::forward, theme));
  EXPECT_EQ(overview.image().pixel(200, overview.image().height() - 1), phase_colour(analysis::Phase::evaluate, theme));
}

TEST(Iterations, OfTheUsersOwnNameHaveTheirNumberAndACalmColour) {
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  main.add_slice(0, 100, "iteration", "mine");
  main.add_slice(100, 200, "iteration", "mine");
  main.add_slice(200, 300, "step 7", "mine");
  const auto run = index_run("own", builder.finish());
  EXPECT_EQ(slice_title(*run, {.rank = 0, .track = 0, .slice = 1}), "iteration 1");
  EXPECT_EQ(slice_title(*run, {.rank = 0, .track = 0, .slice = 2}), "step 7");
  SliceColours colours(run->trace, Theme::light());
  EXPECT_EQ(colours.of(run->trace.ranks[0].tracks[0].slices.kind[0]), Theme::light().container);
}

TEST(Names, ThatAreLongOrRunFromRightToLeftKeepTheirPlace) {
  const QString long_one = shown_name(std::string(3000, 'x') + "end");
  EXPECT_LE(long_one.size(), 160);
  EXPECT_TRUE(long_one.endsWith("end"));
  EXPECT_EQ(shown_name("two\nlines"), "two lines");
  const QString hebrew = shown_name("\u05e9\u05dc\u05d5\u05dd");
  EXPECT_EQ(hebrew.front(), QChar(0x2068));
  EXPECT_EQ(hebrew.back(), QChar(0x2069));
}

TEST(Palette, LabelsHaveAContrastOfFourAndAHalf) {
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    std::vector<QRgb> backgrounds{theme.background, theme.header, theme.container};
    for (const analysis::Phase phase : phase_order) backgrounds.push_back(phase_colour(phase, theme));
    for (int i = 0; i < 200; ++i)
      backgrounds.push_back(
          name_colour("name" + std::string(1, char('a' + i % 26)) + std::string(1, char('a' + i / 26)), theme));
    for (const QRgb background : backgrounds) EXPECT_GE(contrast(text_colour_on(background), background), 4.5);
    for (const QRgb background : {theme.background, theme.header, theme.ruler, theme.row}) {
      EXPECT_GE(contrast(theme.faint_text, background), 4.5);
    }
  }
}

TEST(Pauses, AreHatchedAndBelongToNoPhase) {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.info().end_ns = 1000;
  rank.info().gaps.push_back({.start_ns = 200, .end_ns = 600, .reason = "outside --iterations", .lost = false});
  rank.add_main_thread().add_slice(600, 1000, "iteration");
  const auto run = index_run("paused", builder.finish());
  Document document(run);
  ViewState state(*run);
  TimelineWidget timeline(document, state);
  timeline.resize(header_width + 1000, 200);
  timeline.show();
  const QImage picture = timeline.viewport()->grab().toImage();
  const auto& strip = timeline.rows().rows_of(0).front();
  const Theme theme = Theme::light();
  std::set<QRgb> seen;
  for (int y = strip.y; y < strip.end_y; ++y)
    seen.insert(picture.pixel(header_width + 580 * state.time.axis().width() / 1000, ruler_height + y));
  EXPECT_EQ(seen, (std::set<QRgb>{theme.background, theme.faint_text}));
  const QPoint at(header_width + state.time.axis().width() / 2, ruler_height + strip.y + 3);
  EXPECT_TRUE(timeline.tooltip_at(at).contains("outside --iterations"));
  EXPECT_FALSE(run->ranks[0].incomplete) << "a pause is on purpose";
}

TEST(Damage, IsMarkedAtTheRank) {
  for (const bool damaged : {false, true}) {
    analysis::TraceBuilder builder;
    analysis::RankBuilder& rank = builder.add_rank(0);
    rank.info().end_ns = 1000;
    rank.info().damaged = damaged;
    rank.info().damage = "block 3: wrong checksum";
    rank.add_main_thread().add_slice(0, 1000, "iteration");
    const auto run = index_run("damaged", builder.finish());
    Document document(run);
    ViewState state(*run);
    TimelineWidget timeline(document, state);
    timeline.resize(header_width + 600, 200);
    timeline.show();
    const QImage picture = timeline.viewport()->grab().toImage();
    const auto& strip = timeline.rows().rows_of(0).front();
    int warning = 0;
    for (int y = strip.y; y < strip.end_y; ++y) {
      for (int x = 0; x < header_width; ++x) warning += picture.pixel(x, ruler_height + y) == 0xffe6a100;
    }
    EXPECT_EQ(warning > 10, damaged);
    EXPECT_EQ(timeline.tooltip_at({60, ruler_height + strip.y + 5}).contains("wrong checksum"), damaged);
  }
}

TEST(Rows, OfARankOfTheTrainerAreCompact) {
  const auto run = index_run("reference", simulate({.ranks = 2, .iterations = 4}));
  Document document(run);
  ViewState state(*run);
  const RowLayout rows(document, state.arrangement);
  EXPECT_LE(rows.ranks()[0].end_y - rows.ranks()[0].y, 120);
}

TEST(EmptyTrace, ShowsWhatToDo) {
  analysis::TraceBuilder builder;
  builder.add_rank(0).add_main_thread();
  Window window;
  RunPage* page = window.show_run(index_run("empty", builder.finish()));
  window.show();
  bool found = false;
  for (const QLabel* label : page->findChildren<QLabel*>()) {
    found = found || (label->isVisible() && label->text().contains("paceline record"));
  }
  EXPECT_TRUE(found);
  page->document().background().finish();
  window.grab();
}

TEST(Loading, ShowsEachRankAndItsProgress) {
  QTemporaryDir directory;
  analysis::write_run(simulate({.ranks = 3, .iterations = 4}), directory.path().toStdString());
  Loader loader(directory.path());
  LoadingPage page(directory.path());
  std::shared_ptr<const viewer::Run> run;
  QObject::connect(&loader, &Loader::rank_progressed, &page, &LoadingPage::show_rank);
  QObject::connect(&loader, &Loader::progressed, &page, &LoadingPage::show_progress);
  QObject::connect(&loader, &Loader::loaded, &page,
                   [&](std::shared_ptr<const viewer::Run> opened) { run = std::move(opened); });
  QSignalSpy progressed(&loader, &Loader::progressed);
  loader.start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return run != nullptr; }, 20'000));
  const auto* ranks = page.findChild<QListWidget*>();
  ASSERT_EQ(ranks->count(), 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(ranks->item(rank)->text().startsWith(QString("rank %1 on node0").arg(rank)));
    EXPECT_EQ(ranks->item(rank)->data(Qt::UserRole).toInt(), 100);
  }
  EXPECT_GT(progressed.count(), 2);
}

}  // namespace
}  // namespace paceline::viewer
