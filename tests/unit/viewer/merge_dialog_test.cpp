// SPDX-License-Identifier: Apache-2.0
// The dialog that lists several files before they are opened as one run.
#include <gtest/gtest.h>

#include <QDropEvent>
#include <QFile>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>

#include "tests/unit/analysis/merge_files.h"
#include "viewer/merging/merge_dialog.h"
#include "viewer/session/recent_runs.h"
#include "viewer/window/window.h"

namespace paceline::viewer {
namespace {

using analysis::RecordedFile;

class MergeFiles : public testing::Test {
 protected:
  QString write(const QString& name, const RecordedFile& what) const {
    const QString path = directory.path() + "/" + name;
    analysis::write_recorded(path.toStdString(), what);
    return path;
  }
  static void wait(MergeDialog& dialog) {
    dialog.finish();
    QTest::qWait(0);
  }
  static QTableWidget* table(const MergeDialog& dialog) { return dialog.findChild<QTableWidget*>(); }
  static int row_of(const MergeDialog& dialog, const QString& name) {
    QTableWidget* files = table(dialog);
    for (int row = 0; row < files->rowCount(); ++row) {
      if (files->item(row, MergeDialog::file)->text() == name) return row;
    }
    return -1;
  }
  static QString text(const MergeDialog& dialog, const QString& name, MergeDialog::Column column) {
    const int row = row_of(dialog, name);
    return row < 0 ? "no such row" : table(dialog)->item(row, column)->text();
  }
  static QPushButton* button(const QWidget& dialog, const QString& label) {
    for (auto* one : dialog.findChildren<QPushButton*>()) {
      if (QString(one->text()).remove('&') == label) return one;
    }
    return nullptr;
  }

  QTemporaryDir directory;
};

TEST_F(MergeFiles, AreListedWithRankHostTimeAndClock) {
  MergeDialog dialog({write("a.pace", {.rank = 0, .recording = 1}), write("b.pace", {.rank = 1, .recording = 2})});
  dialog.show();
  EXPECT_FALSE(button(dialog, "Open as one run")->isEnabled()) << "before the files are read";
  wait(dialog);
  ASSERT_EQ(table(dialog)->rowCount(), 2);
  EXPECT_EQ(text(dialog, "a.pace", MergeDialog::format), "pace");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::rank), "1");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::host), "node0");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::span), "0.0 ms to 398.0 ms");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::clock), "shared clock");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::error), "± 1.000 µs");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::taken), "yes");
  EXPECT_TRUE(dialog.summary().startsWith("2 of 2 files become a run of 2 ranks")) << dialog.summary().toStdString();
  EXPECT_TRUE(button(dialog, "Open as one run")->isEnabled());
  EXPECT_TRUE(button(dialog, "Compare the two")->isVisible());
  ASSERT_NE(dialog.run(), nullptr);
  EXPECT_EQ(dialog.run()->trace.ranks.size(), 2u);
}

TEST_F(MergeFiles, ThatDoNotBelongToTheRunAreLeftOutWithTheReason) {
  const QString first = write("a.pace", {.rank = 0, .recording = 1}),
                second = write("b.pace", {.rank = 1, .recording = 2});
  const QString copy = write("copy.pace", {.rank = 1, .recording = 2});
  const QString other = write("other.pace", {.rank = 0, .recording = 3, .job = "8"});
  const QString damaged = write("damaged.pace", {.rank = 2, .recording = 4});
  analysis::damage_file(damaged.toStdString());
  const QString stump = write("stump.pace", {.rank = 3, .recording = 5});
  QFile::resize(stump, 100);
  MergeDialog dialog({first, second, copy, other, damaged, stump});
  dialog.show();
  wait(dialog);
  EXPECT_EQ(text(dialog, "copy.pace", MergeDialog::taken), "left out: a copy of " + second);
  EXPECT_EQ(text(dialog, "other.pace", MergeDialog::taken), "left out: of another job: 8, and this run is job 7");
  EXPECT_TRUE(text(dialog, "damaged.pace", MergeDialog::taken).startsWith("yes; damaged: "))
      << text(dialog, "damaged.pace", MergeDialog::taken).toStdString();
  EXPECT_TRUE(text(dialog, "stump.pace", MergeDialog::taken).startsWith("left out: "));
  EXPECT_EQ(table(dialog)->item(row_of(dialog, "other.pace"), MergeDialog::file)->checkState(), Qt::Unchecked);
  EXPECT_EQ(dialog.run()->trace.ranks.size(), 3u) << "the dialog shows what the loader did";
  EXPECT_TRUE(dialog.summary().contains("3 files are left out")) << dialog.summary().toStdString();
  EXPECT_TRUE(dialog.summary().contains("1 file has gaps"));
  EXPECT_FALSE(button(dialog, "Compare the two")->isVisible()) << "of more than two paths";
}

TEST_F(MergeFiles, AreLeftOutAndTakenBackByTheirMark) {
  MergeDialog dialog({write("a.pace", {.rank = 0, .recording = 1}), write("b.pace", {.rank = 1, .recording = 2})});
  dialog.show();
  wait(dialog);
  table(dialog)->item(row_of(dialog, "b.pace"), MergeDialog::file)->setCheckState(Qt::Unchecked);
  wait(dialog);
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::taken), "left out: not chosen");
  EXPECT_EQ(dialog.run()->trace.ranks.size(), 1u);
  table(dialog)->item(row_of(dialog, "a.pace"), MergeDialog::file)->setCheckState(Qt::Unchecked);
  wait(dialog);
  EXPECT_EQ(dialog.run(), nullptr);
  EXPECT_FALSE(button(dialog, "Open as one run")->isEnabled());
  EXPECT_TRUE(dialog.summary().contains("choose at least one")) << dialog.summary().toStdString();
  table(dialog)->item(row_of(dialog, "b.pace"), MergeDialog::file)->setCheckState(Qt::Checked);
  wait(dialog);
  ASSERT_NE(dialog.run(), nullptr);
  EXPECT_EQ(dialog.run()->trace.ranks.front().rank, 1);
}

TEST_F(MergeFiles, AreAlignedByTheChosenMethodAndOffset) {
  MergeDialog dialog({write("a.pace", {.rank = 0, .recording = 1, .host = "node0"}),
                      write("b.pace", {.rank = 1, .recording = 2, .host = "node1", .clock_ns = 5'000'000})});
  dialog.show();
  wait(dialog);
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::clock), "UTC");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::error), "± 20.00 ms");
  auto* method = dialog.findChild<QComboBox*>();
  method->setCurrentText("Matching collectives");
  wait(dialog);
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::clock), "collectives");
  const std::int64_t aligned = dialog.run()->trace.ranks[1].end_ns - dialog.run()->trace.ranks[0].end_ns;
  EXPECT_LT(std::abs(aligned), 1000);
  table(dialog)->item(row_of(dialog, "b.pace"), MergeDialog::offset)->setText("-2 ms");
  wait(dialog);
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::offset), "−2.000 ms");
  EXPECT_NEAR(double(dialog.run()->trace.ranks[1].end_ns - dialog.run()->trace.ranks[0].end_ns), -2e6, 1000);
  table(dialog)->item(row_of(dialog, "b.pace"), MergeDialog::offset)->setText("soon");
  EXPECT_EQ(text(dialog, "b.pace", MergeDialog::offset), "−2.000 ms");
  EXPECT_TRUE(dialog.summary().startsWith("An offset is a time"));
  method->setCurrentText("Clock exchange");
  wait(dialog);
  EXPECT_EQ(dialog.run(), nullptr);
  EXPECT_TRUE(dialog.summary().contains("was not compared")) << dialog.summary().toStdString();
}

TEST_F(MergeFiles, HaveARankForEachProcessByTheChoice) {
  const QString path = directory.path() + "/two.json";
  QFile two(path);
  ASSERT_TRUE(two.open(QFile::WriteOnly));
  two.write(R"([{"ph":"X","name":"work","pid":40,"tid":1,"ts":5,"dur":2},)"
            R"({"ph":"X","name":"work","pid":41,"tid":2,"ts":5,"dur":2}])");
  two.close();
  MergeDialog dialog({path}, {.processes = analysis::Processes::one_rank});
  dialog.show();
  wait(dialog);
  auto* processes = dialog.findChildren<QComboBox*>().at(1);
  EXPECT_EQ(processes->currentText(), "One rank");
  ASSERT_NE(dialog.run(), nullptr);
  EXPECT_EQ(dialog.run()->trace.ranks.size(), 1u);
  processes->setCurrentText("A rank each");
  wait(dialog);
  ASSERT_NE(dialog.run(), nullptr);
  EXPECT_EQ(dialog.run()->trace.ranks.size(), 2u);
  EXPECT_EQ(table(dialog)->rowCount(), 2);
  EXPECT_EQ(dialog.source().choices.processes, analysis::Processes::ranks);
}

TEST_F(MergeFiles, OpenWhenTheyAreDroppedTogether) {
  Window window;
  window.resize(1000, 700);
  window.show();
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(write("a.pace", {.rank = 0, .recording = 1})),
                QUrl::fromLocalFile(write("b.pace", {.rank = 1, .recording = 2}))});
  QDragEnterEvent enter(QPoint(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &enter);
  QDropEvent drop(QPointF(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QCoreApplication::sendEvent(&window, &drop);
  auto* dialog = window.findChild<MergeDialog*>();
  ASSERT_NE(dialog, nullptr);
  wait(*dialog);
  QTest::mouseClick(button(*dialog, "Open as one run"), Qt::LeftButton);
  ASSERT_NE(window.current_page(), nullptr);
  EXPECT_EQ(window.current_page()->run().trace.ranks.size(), 2u);
  EXPECT_TRUE(window.windowTitle().contains("a.pace + 1 more")) << window.windowTitle().toStdString();
  window.current_page()->document().background().finish();
}

TEST_F(MergeFiles, AreOneRecentRunThatOpensAgainAsItWas) {
  const QStringList paths{write("a.pace", {.rank = 0, .recording = 1}), write("b.pace", {.rank = 1, .recording = 2}),
                          write("c.pace", {.rank = 2, .recording = 3})};
  std::int64_t end_ns = 0;
  for (int round = 0; round < 2; ++round) {
    Window window;
    window.set_remembering(true);
    window.show();
    window.merge(paths);
    auto* dialog = window.findChild<MergeDialog*>();
    wait(*dialog);
    table(*dialog)->item(row_of(*dialog, "c.pace"), MergeDialog::file)->setCheckState(Qt::Unchecked);
    wait(*dialog);
    table(*dialog)->item(row_of(*dialog, "b.pace"), MergeDialog::offset)->setText("3 ms");
    wait(*dialog);
    QTest::mouseClick(button(*dialog, "Open as one run"), Qt::LeftButton);
    end_ns = window.current_page()->run().trace.ranks[1].end_ns;
    window.current_page()->document().background().finish();
  }
  const auto recent = recent_runs();
  ASSERT_FALSE(recent.empty());
  EXPECT_EQ(recent.front().paths, paths);
  EXPECT_EQ(std::ranges::count(recent, paths, &RunSource::paths), 1) << "an entry for both";

  Window window;
  window.show();
  for (QMenu* menu : window.findChildren<QMenu*>()) {
    if (menu->title() != "Open &recent") continue;
    Q_EMIT menu->aboutToShow();
    EXPECT_TRUE(menu->actions().front()->text().endsWith("a.pace + 2 more"));
    menu->actions().front()->trigger();
  }
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.current_page() != nullptr; }, 20'000));
  EXPECT_EQ(window.findChild<MergeDialog*>(), nullptr);
  const auto& ranks = window.current_page()->run().trace.ranks;
  ASSERT_EQ(ranks.size(), 2u) << "without the file that was left out";
  EXPECT_EQ(ranks[1].end_ns, end_ns) << "with the offset";
  window.current_page()->document().background().finish();
}

TEST(RunSource, IsTheSameAfterItWasWritten) {
  const RunSource plain{.paths = {"/runs/a"}};
  EXPECT_EQ(source_to_text(plain), "/runs/a");
  EXPECT_EQ(source_from_text("/runs/a").paths, QStringList{"/runs/a"});
  const RunSource merged{.paths = {"/a \"b\"", "/c, d"},
                         .choices = {.clock = analysis::ClockMethod::collectives,
                                     .processes = analysis::Processes::ranks,
                                     .without = {"/c, d/é.pace"},
                                     .offset_ns = {{"/a \"b\"", 9'007'199'254'740'993}}},
                         .merged = true};
  const RunSource read = source_from_text(source_to_text(merged));
  EXPECT_EQ(read.paths, merged.paths);
  EXPECT_EQ(read.choices.clock, merged.choices.clock);
  EXPECT_EQ(read.choices.processes, merged.choices.processes);
  EXPECT_EQ(read.choices.without, merged.choices.without);
  EXPECT_EQ(read.choices.offset_ns, merged.choices.offset_ns);
  EXPECT_TRUE(read.merged);
  EXPECT_TRUE(source_from_text("{damaged").paths.isEmpty());
}

TEST_F(MergeFiles, AreComparedOrOpenedSeparately) {
  const QStringList paths{write("a.pace", {.rank = 0, .recording = 1}), write("b.pace", {.rank = 0, .recording = 2})};
  for (const QString& label : {QString("Open separately"), QString("Compare the two")}) {
    Window window;
    window.show();
    window.merge(paths);
    auto* dialog = window.findChild<MergeDialog*>();
    ASSERT_NE(dialog, nullptr);
    QTest::mouseClick(button(*dialog, label), Qt::LeftButton);
    const int tabs = label == "Open separately" ? 2 : 1;
    EXPECT_EQ(window.findChild<QTabWidget*>()->count(), tabs);
    const auto opened = [&] { return tabs == 2 ? window.current_page() != nullptr : window.current_tab() != nullptr; };
    EXPECT_TRUE(QTest::qWaitFor(opened, 20'000)) << label.toStdString();
  }
}

}  // namespace
}  // namespace paceline::viewer
