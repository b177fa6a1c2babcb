// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <QAction>
#include <QApplication>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <atomic>
#include <optional>

#include "analysis/trace/builder.h"
#include "profiler/format/writer.h"
#include "tests/unit/analysis/rank_phases.h"
#include "tests/unit/viewer/simulated_run.h"
#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/details_panel.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/search.h"
#include "viewer/text/time_text.h"
#include "viewer/window/window.h"

namespace paceline::viewer {
namespace {

std::shared_ptr<const Run> simulated() {
  static const auto run = index_run("runs/simulated", simulate({.ranks = 2, .iterations = 6}));
  return run;
}

// What a page holds for its panels.
struct Open {
  explicit Open(std::shared_ptr<const Run> run) : document(std::move(run)), state(document.run()) {}
  void finish() { document.background().finish(); }

  Document document;
  ViewState state;
};

// For searches that nobody cancels.
const Ticket& no_ticket() {
  static const std::atomic<bool> open = false;
  static const Ticket ticket(open);
  return ticket;
}

QString header_of(const QAbstractItemModel& table, int column) {
  return table.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
}
QString cell(const QAbstractItemModel& table, int row, int column) {
  return table.index(row, column).data().toString();
}

int column_named(const QAbstractItemModel& table, const QString& name) {
  for (int column = 0; column < table.columnCount(); ++column) {
    if (header_of(table, column) == name) return column;
  }
  return -1;
}

TEST(BreakdownPanel, ShowsThePhasesOfTheWholeRun) {
  Open open(simulated());
  const BreakdownPanel panel(open.document, open.state.selection);
  const auto& table = panel.table();
  ASSERT_EQ(table.rowCount(), 2);
  for (int row = 0; row < 2; ++row) {
    const auto& totals = simulated()->ranks[static_cast<std::size_t>(row)].phases->totals();
    const auto& rank = simulated()->trace.ranks[static_cast<std::size_t>(row)];
    EXPECT_EQ(cell(table, row, 0), QString("Rank %1").arg(row));
    EXPECT_EQ(cell(table, row, 1), duration_text(rank.end_ns - rank.start_ns));
    const std::int64_t backward = totals[static_cast<std::size_t>(analysis::Phase::backward)];
    const double share = double(backward) / double(rank.end_ns - rank.start_ns);
    EXPECT_EQ(cell(table, row, column_named(table, "backward")), duration_text(backward) + "\n" + share_text(share));
  }
  EXPECT_EQ(column_named(table, "copy"), -1) << "a phase that no rank was in";
}

TEST(BreakdownPanel, ShowsOnlyTheSelectedRange) {
  Open open(simulated());
  const BreakdownPanel panel(open.document, open.state.selection);
  const analysis::PhaseTable& phases = simulated()->index->phases();
  const analysis::Rank& rank = simulated()->trace.ranks[0];
  const auto iteration = analysis::iterations_of(phases, rank, analysis::phases_of(phases, rank))[2];
  const auto begin = double(iteration.start_ns), end = double(iteration.start_ns + iteration.duration_ns);
  open.state.selection.select_range(TimeRange{begin, end});
  EXPECT_EQ(panel.title(), "Phases of each rank, whole run") << "a range is computed beside the UI thread";
  open.finish();
  const auto& table = panel.table();
  EXPECT_EQ(header_of(table, 1), "Selected");
  EXPECT_EQ(cell(table, 0, 1), duration_text(iteration.duration_ns));
  const std::int64_t forward = iteration.phase_ns[static_cast<std::size_t>(analysis::Phase::forward)];
  EXPECT_TRUE(cell(table, 0, column_named(table, "forward")).startsWith(duration_text(forward) + "\n"));
  EXPECT_EQ(cell(table, 0, column_named(table, "startup")), "–");
  open.state.selection.select_range(std::nullopt);
  EXPECT_EQ(panel.title(), "Phases of each rank, whole run");
}

TEST(Legend, ListsThePhasesThatOccurInTheOrderOfAllViews) {
  using analysis::Phase;
  EXPECT_EQ(phases_present(*simulated()),
            (std::vector{Phase::startup, Phase::preprocess, Phase::forward, Phase::backward, Phase::optimizer,
                         Phase::communication, Phase::evaluate, Phase::checkpoint, Phase::other}));
}

TEST(DetailsPanel, ShowsTheRunUntilASliceIsSelected) {
  Open open(simulated());
  const DetailsPanel panel(open.document, open.state.selection);
  EXPECT_TRUE(panel.toPlainText().contains("--model resnet18"));
}

TEST(DetailsPanel, ShowsEverythingKnownAboutASlice) {
  Open open(simulated());
  const DetailsPanel panel(open.document, open.state.selection);
  const auto hits = find_by_name(*simulated(), "MPI_Allreduce", no_ticket());
  ASSERT_FALSE(hits.found.empty());
  const SliceRef call = hits.found.front();
  open.state.selection.select(call);
  EXPECT_TRUE(panel.toPlainText().contains("computing…")) << "the statistics of the name come later";
  const auto& slices = slices_of(*simulated(), call);
  for (const bool complete : {false, true}) {
    if (complete) open.finish();
    const QString text = panel.toPlainText();
    for (const QString& expected :
         {QString("MPI_Allreduce"), duration_text(slices.duration_ns[call.slice]), QString("44,689,440 B"),
          QString("world"), QString("mpi, collective"), QString("of iteration 0")}) {
      EXPECT_TRUE(text.contains(expected)) << expected.toStdString() << " in\n" << text.toStdString();
    }
  }
  const auto statistics =
      analysis::durations_of(simulated()->trace, simulated()->trace.ranks[1].tracks, kind_of(*simulated(), call).name);
  EXPECT_TRUE(panel.toPlainText().contains(duration_text(statistics.median_ns)));
  EXPECT_FALSE(panel.toPlainText().contains("computing…"));
}

TEST(DetailsPanel, ShowsOnlyTheLatestSelection) {
  Open open(simulated());
  const DetailsPanel panel(open.document, open.state.selection);
  for (const char* name : {"forward", "MPI_Allreduce", "backward"}) {
    open.state.selection.select(find_by_name(*simulated(), name, no_ticket()).found.front());
  }
  open.finish();
  const auto id = simulated()->trace.names.find("backward");
  const auto statistics = analysis::durations_of(simulated()->trace, simulated()->trace.ranks[0].tracks, id);
  EXPECT_TRUE(panel.toPlainText().trimmed().startsWith("backward\n")) << panel.toPlainText().toStdString();
  EXPECT_TRUE(panel.toPlainText().contains(duration_text(statistics.median_ns)));
  open.state.selection.select(std::nullopt);
  open.finish();
  EXPECT_TRUE(panel.toPlainText().contains("--model resnet18"));
}

// A call of NCCL, the collective that it started, and a copy.
std::shared_ptr<const Run> with_devices() {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  analysis::TrackBuilder& main = rank.add_main_thread();
  main.add_slice(1'000'000, 1'100'000, "ncclAllReduce", "NCCL");
  main.argument("call", 7);
  main.add_slice(3'000'000, 3'100'000, "ncclAllReduce", "NCCL");
  main.argument("call", 8);
  analysis::TrackBuilder& nccl = rank.add_track(analysis::TrackKind::nccl, "NCCL data parallel");
  nccl.add_slice(2'000'000, 2'500'000, "ncclAllReduce", "nccl", "collective");
  nccl.argument("call", 7);
  analysis::TrackBuilder& stream = rank.add_track(analysis::TrackKind::stream, "GPU 0 stream 7");
  stream.add_slice(2'600'000, 2'700'000, "Memcpy HtoD", "cuda", "memcpy");
  return index_run("devices", builder.finish());
}

TEST(DetailsPanel, LeadsFromACallToWhatItStartedAndBack) {
  const auto run = with_devices();
  Open open(run);
  const DetailsPanel panel(open.document, open.state.selection);
  const auto text_for = [&](const SliceRef& ref) {
    open.state.selection.select(ref);
    open.finish();
    return panel.toPlainText();
  };
  const QString call = text_for({.rank = 0, .track = 0, .slice = 0});
  EXPECT_TRUE(call.contains("ran as")) << call.toStdString();
  EXPECT_TRUE(call.contains("ncclAllReduce (NCCL data parallel, 2")) << call.toStdString();
  const QString collective = text_for({.rank = 0, .track = 1, .slice = 0});
  EXPECT_TRUE(collective.contains("called by")) << collective.toStdString();
  EXPECT_TRUE(collective.contains("ncclAllReduce (main thread, 1"));
  EXPECT_FALSE(collective.contains("(main thread, 3"));
  EXPECT_FALSE(text_for({.rank = 0, .track = 0, .slice = 1}).contains("ran as"));
}

TEST(Legend, IncludesPhasesThatOnlyDevicesWereIn) {
  using analysis::Phase;
  const auto phases = phases_drawn(*with_devices());
  EXPECT_TRUE(std::ranges::find(phases, Phase::copy) != phases.end());
  EXPECT_TRUE(std::ranges::find(phases, Phase::forward) == phases.end());
  const auto spent = phases_present(*with_devices());
  EXPECT_TRUE(std::ranges::find(spent, Phase::copy) == spent.end()) << "no rank's own time";
}

TEST(Search, FindsEveryNameInTheWholeRunInOrderOfTime) {
  const auto hits = find_by_name(*simulated(), "ALLreduce", no_ticket());
  EXPECT_FALSE(hits.more);
  // In 6 iterations on 2 ranks the range and the call in it, and the call of the evaluation.
  EXPECT_EQ(hits.found.size(), 2u * (6 * 2 + 1));
  for (std::size_t i = 1; i < hits.found.size(); ++i) {
    const auto start = [&](const SliceRef& ref) { return slices_of(*simulated(), ref).start_ns[ref.slice]; };
    EXPECT_LE(start(hits.found[i - 1]), start(hits.found[i]));
  }
  EXPECT_TRUE(find_by_name(*simulated(), "no such name", no_ticket()).found.empty());
  EXPECT_TRUE(find_by_name(*simulated(), "", no_ticket()).found.empty());
}

TEST(Search, EnterGoesFromHitToHitAndRoundAgain) {
  Open open(simulated());
  SearchBar bar(open.document, open.state);
  QSignalSpy chosen(&open.state.selection, &Selection::revealed);
  auto* field = bar.findChild<QLineEdit*>();
  auto* count = bar.findChild<QLabel*>();
  QTest::keyClicks(field, "checkpoint");
  QTest::keyClick(field, Qt::Key_Return);
  EXPECT_EQ(count->text(), "searching…");
  EXPECT_EQ(chosen.count(), 0);
  open.finish();
  EXPECT_EQ(chosen.count(), 1);
  EXPECT_EQ(count->text(), "1 of 1");
  const auto first = open.state.selection.slice();
  QTest::keyClick(field, Qt::Key_Return);
  EXPECT_EQ(chosen.count(), 2);
  EXPECT_EQ(open.state.selection.slice(), first) << "there is one checkpoint";
  QTest::keyClick(field, Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(chosen.count(), 3);
}

TEST(Search, AConditionThatShowsRowsIsNotCalledNotFound) {
  Open open(simulated());
  SearchBar bar(open.document, open.state);
  auto* field = bar.findChild<QLineEdit*>();
  auto* count = bar.findChild<QLabel*>();
  auto* filter = bar.findChildren<QToolButton*>().last();
  QTest::keyClicks(field, "mpi and not rank 1");
  QTest::keyClick(field, Qt::Key_Return);
  open.finish();
  EXPECT_EQ(count->text(), "not found") << "it is no name";
  filter->click();
  open.finish();
  EXPECT_EQ(open.state.arrangement.filter(), "mpi and not rank 1");
  EXPECT_EQ(count->text(), "");
  QTest::keyClick(field, Qt::Key_Return);
  open.finish();
  EXPECT_EQ(count->text(), "");
  QTest::keyClicks(field, "(");
  filter->click();
  QTest::keyClick(field, Qt::Key_Return);
  open.finish();
  EXPECT_EQ(count->text(), "not found; not a regular expression");
  field->setText("mpi and not rank 0");
  filter->click();
  open.finish();
  QTest::keyClick(field, Qt::Key_Return);
  open.finish();
  EXPECT_EQ(count->text(), "") << "searched for with the filter on";
}

TEST(Search, AnEmptyTextCancelsTheSearch) {
  Open open(simulated());
  SearchBar bar(open.document, open.state);
  auto* field = bar.findChild<QLineEdit*>();
  QTest::keyClicks(field, "forward");
  QTest::keyClick(field, Qt::Key_Return);
  field->clear();
  open.finish();
  EXPECT_TRUE(bar.hits().found.empty());
  EXPECT_FALSE(open.state.selection.slice());
}

class WindowTest : public testing::Test {
 protected:
  // Two ranks with the trainer's ranges.
  void write_run() {
    for (int rank = 0; rank < 2; ++rank) {
      format::TraceWriter writer({.pid = static_cast<std::uint32_t>(70 + rank),
                                  .ticks_per_second = 1e9,
                                  .start_utc_ns = 1'700'000'000'000'000'000,
                                  .process_start_utc_ns = 1'700'000'000'000'000'000,
                                  .rank = rank,
                                  .world_size = 2,
                                  .host = "node1",
                                  .boot_id = "boot",
                                  .command = {},
                                  .environment = {}});
      writer.add(0, 1'000'000, format::EventType::push, writer.scope("forward", "paceline.trainer", "forward"));
      writer.add(0, 5'000'000, format::EventType::pop, writer.domain("paceline.trainer"));
      writer.write((directory.path() + "/rank" + QString::number(rank) + ".pace").toStdString());
    }
  }
  QTemporaryDir directory;
  Window window;
};

TEST_F(WindowTest, LoadsBesideTheUiThreadAndThenShowsTheRun) {
  write_run();
  window.show();
  window.open(directory.path());
  EXPECT_EQ(window.current_page(), nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.current_page() != nullptr; }, 20'000));
  EXPECT_EQ(window.current_page()->run().trace.ranks.size(), 2u);
  EXPECT_TRUE(window.windowTitle().endsWith("Paceline"));
  EXPECT_TRUE(window.current_page()->status().contains("2 ranks, 2 slices"));
  for (const auto& [name, expected] : {std::pair("forward", true), std::pair("sideward", false)}) {
    std::optional<bool> found;
    window.current_page()->select_name(name, window.current_page()->state().time.axis().visible(),
                                       [&](bool is_there) { found = is_there; });
    window.current_page()->document().background().finish();
    EXPECT_EQ(found, expected) << name;
  }
  EXPECT_TRUE(window.current_page()->state().selection.slice());
}

TEST_F(WindowTest, ShowsWhyARunCannotBeOpened) {
  window.show();
  window.open("/no/such/run");
  const auto message = [&]() -> QLabel* {
    for (QLabel* label : window.findChildren<QLabel*>()) {
      if (label->text().contains("could not be opened")) return label;
    }
    return nullptr;
  };
  ASSERT_TRUE(QTest::qWaitFor([&] { return message() != nullptr; }, 20'000));
  EXPECT_TRUE(message()->text().contains("/no/such/run"));
  EXPECT_EQ(window.current_page(), nullptr);
}

TEST_F(WindowTest, CancelEndsALoadAndClosesItsPage) {
  write_run();
  window.show();
  window.open(directory.path());
  for (QPushButton* button : window.findChildren<QPushButton*>()) {
    if (button->text() == "Cancel") button->click();
  }
  QTest::qWait(200);
  EXPECT_EQ(window.current_page(), nullptr);
  EXPECT_EQ(window.findChild<QTabWidget*>()->count(), 1) << "the page that is shown while no run is open";
}

TEST_F(WindowTest, ShowsSeveralRunsInTabs) {
  window.show_run(simulated());
  window.show_run(simulated());
  EXPECT_EQ(window.findChild<QTabWidget*>()->count(), 2);
}

TEST_F(WindowTest, ItsMenusShowAndHideThePanels) {
  RunPage* page = window.show_run(simulated());
  window.show();
  auto* breakdown = page->findChild<BreakdownPanel*>();
  ASSERT_NE(breakdown, nullptr);
  EXPECT_TRUE(breakdown->isVisible());
  for (QAction* entry : window.findChildren<QAction*>()) {
    if (entry->text() == "Show or hide &panels") entry->trigger();
  }
  EXPECT_FALSE(breakdown->isVisible());
}

}  // namespace
}  // namespace paceline::viewer
