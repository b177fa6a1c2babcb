#include <gtest/gtest.h>

#include <QApplication>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>

#include "analysis/trace/builder.h"
#include "profiler/format/writer.h"
#include "tests/unit/viewer/simulated_run.h"
#include "viewer/drawing/time_text.h"
#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/details_panel.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/search.h"
#include "viewer/window/window.h"

namespace paceline::viewer {
namespace {

std::shared_ptr<const Run> simulated() {
  static const auto run = index_run("runs/simulated", simulate({.ranks = 2, .iterations = 6}));
  return run;
}

int column_named(const QTableWidget& table, const QString& name) {
  for (int column = 0; column < table.columnCount(); ++column) {
    if (table.horizontalHeaderItem(column)->text() == name) return column;
  }
  return -1;
}

TEST(BreakdownPanel, ShowsThePhasesOfTheWholeRun) {
  const BreakdownPanel panel(simulated());
  const auto& table = panel.table();
  ASSERT_EQ(table.rowCount(), 2);
  for (int row = 0; row < 2; ++row) {
    const auto& totals = simulated()->ranks[static_cast<std::size_t>(row)].phases.total_ns;
    const auto& rank = simulated()->trace.ranks[static_cast<std::size_t>(row)];
    EXPECT_EQ(table.item(row, 0)->text(), QString("Rank %1").arg(row));
    EXPECT_EQ(table.item(row, 1)->text(), duration_text(rank.end_ns - rank.start_ns));
    const std::int64_t backward = totals[static_cast<std::size_t>(analysis::Phase::backward)];
    const double share = double(backward) / double(rank.end_ns - rank.start_ns);
    EXPECT_EQ(table.item(row, column_named(table, "backward"))->text(),
              duration_text(backward) + "\n" + share_text(share));
  }
  EXPECT_EQ(column_named(table, "copy"), -1) << "a phase that no rank was in";
}

TEST(BreakdownPanel, ShowsTheSelectedStretchAlone) {
  BreakdownPanel panel(simulated());
  const auto& iteration = simulated()->ranks[0].iterations[2];
  const auto begin = double(iteration.start_ns), end = double(iteration.start_ns + iteration.duration_ns);
  panel.show_range(TimeRange{begin, end});
  const auto& table = panel.table();
  EXPECT_EQ(table.item(0, 1)->text(), duration_text(iteration.duration_ns));
  const std::int64_t forward = iteration.phase_ns[static_cast<std::size_t>(analysis::Phase::forward)];
  EXPECT_TRUE(table.item(0, column_named(table, "forward"))->text().startsWith(duration_text(forward) + "\n"));
  EXPECT_EQ(table.item(0, column_named(table, "startup"))->text(), "–");
  panel.show_range(std::nullopt);
  EXPECT_EQ(panel.title(), "Phases of each rank, whole run");
}

TEST(Legend, ListsThePhasesThatOccurInTheOrderOfAllViews) {
  using analysis::Phase;
  EXPECT_EQ(phases_present(*simulated()),
            (std::vector{Phase::startup, Phase::preprocess, Phase::forward, Phase::backward, Phase::optimizer,
                         Phase::communication, Phase::evaluate, Phase::checkpoint, Phase::other}));
}

TEST(DetailsPanel, TellsAllThatIsKnownOfASlice) {
  DetailsPanel panel(simulated());
  EXPECT_TRUE(panel.toPlainText().contains("--model resnet18"));
  const auto hits = find_by_name(*simulated(), "MPI_Allreduce");
  ASSERT_FALSE(hits.found.empty());
  const SliceRef call = hits.found.front();
  panel.show_slice(call);
  const QString text = panel.toPlainText();
  const auto& slices = slices_of(*simulated(), call);
  for (const QString& expected :
       {QString("MPI_Allreduce"), duration_text(slices.duration_ns[call.slice]), QString("44,689,440 B"),
        QString("world"), QString("mpi, collective"), QString("of iteration 0")}) {
    EXPECT_TRUE(text.contains(expected)) << expected.toStdString() << " in\n" << text.toStdString();
  }
  const auto statistics = analysis::durations_of(simulated()->trace, simulated()->trace.ranks[1].tracks,
                                                 simulated()->trace.kind_of(slices, call.slice).name);
  EXPECT_TRUE(text.contains(duration_text(statistics.median_ns)));
}

// A call of NCCL's, the collective that it started, and a copy.
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
  DetailsPanel panel(run);
  panel.show_slice(SliceRef{0, 0, 0});
  EXPECT_TRUE(panel.toPlainText().contains("ran as")) << panel.toPlainText().toStdString();
  EXPECT_TRUE(panel.toPlainText().contains("ncclAllReduce (NCCL data parallel, 2"));
  panel.show_slice(SliceRef{0, 1, 0});
  EXPECT_TRUE(panel.toPlainText().contains("called by")) << panel.toPlainText().toStdString();
  EXPECT_TRUE(panel.toPlainText().contains("ncclAllReduce (main thread, 1"));
  EXPECT_FALSE(panel.toPlainText().contains("(main thread, 3"));
  panel.show_slice(SliceRef{0, 0, 1});
  EXPECT_FALSE(panel.toPlainText().contains("ran as"));
}

TEST(Legend, HasTheColoursOfWhatDevicesDo) {
  using analysis::Phase;
  const auto phases = phases_drawn(*with_devices());
  EXPECT_TRUE(std::ranges::find(phases, Phase::copy) != phases.end());
  EXPECT_TRUE(std::ranges::find(phases, Phase::forward) == phases.end());
  const auto spent = phases_present(*with_devices());
  EXPECT_TRUE(std::ranges::find(spent, Phase::copy) == spent.end()) << "no rank's own time";
}

TEST(Search, FindsEveryNameInTheWholeRunInOrderOfTime) {
  const auto hits = find_by_name(*simulated(), "ALLreduce");
  EXPECT_FALSE(hits.more);
  // In 6 iterations on 2 ranks the range and the call in it, and the call of the evaluation.
  EXPECT_EQ(hits.found.size(), 2u * (6 * 2 + 1));
  for (std::size_t i = 1; i < hits.found.size(); ++i) {
    const auto start = [&](const SliceRef& ref) { return slices_of(*simulated(), ref).start_ns[ref.slice]; };
    EXPECT_LE(start(hits.found[i - 1]), start(hits.found[i]));
  }
  EXPECT_TRUE(find_by_name(*simulated(), "no such name").found.empty());
  EXPECT_TRUE(find_by_name(*simulated(), "").found.empty());
}

TEST(Search, EnterGoesFromHitToHitAndRoundAgain) {
  SearchBar bar(simulated());
  std::vector<SliceRef> chosen;
  QObject::connect(&bar, &SearchBar::hit_chosen, [&](const SliceRef& ref) { chosen.push_back(ref); });
  auto* field = bar.findChild<QLineEdit*>();
  QTest::keyClicks(field, "checkpoint");
  QTest::keyClick(field, Qt::Key_Return);
  QTest::keyClick(field, Qt::Key_Return);
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0], chosen[1]) << "there is one checkpoint";
  QTest::keyClick(field, Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(chosen.size(), 3u);
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

TEST_F(WindowTest, LoadsBesideTheWindowAndThenShowsTheRun) {
  write_run();
  window.show();
  window.open(directory.path());
  EXPECT_EQ(window.current_page(), nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.current_page() != nullptr; }, 20'000));
  EXPECT_EQ(window.current_page()->run().trace.ranks.size(), 2u);
  EXPECT_TRUE(window.windowTitle().endsWith("Paceline"));
  EXPECT_TRUE(window.current_page()->status().contains("2 ranks, 2 slices"));
  EXPECT_TRUE(window.current_page()->select_name("forward"));
  EXPECT_FALSE(window.current_page()->select_name("sideward"));
}

TEST_F(WindowTest, SaysWhyARunCannotBeOpened) {
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

TEST_F(WindowTest, CancelEndsALoadAndLeavesNothingBehind) {
  write_run();
  window.show();
  window.open(directory.path());
  for (QPushButton* button : window.findChildren<QPushButton*>()) {
    if (button->text() == "Cancel") button->click();
  }
  QTest::qWait(200);
  EXPECT_EQ(window.current_page(), nullptr);
  EXPECT_EQ(window.findChild<QTabWidget*>()->count(), 1) << "the page that says that no run is open";
}

TEST_F(WindowTest, ShowsSeveralRunsInTabs) {
  window.show_run(simulated());
  window.show_run(simulated());
  EXPECT_EQ(window.findChild<QTabWidget*>()->count(), 2);
}

}  // namespace
}  // namespace paceline::viewer
