// SPDX-License-Identifier: Apache-2.0
// The panels below the timeline that are drawn: heat map, histogram, flame graph, what-if and report.
#include <QAbstractTextDocumentLayout>
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QPushButton>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextLayout>
#include <algorithm>

#include "tests/unit/viewer/page.h"
#include "viewer/panels/flame_graph.h"
#include "viewer/panels/heat_map.h"
#include "viewer/panels/histogram.h"
#include "viewer/panels/overview.h"
#include "viewer/panels/report_panel.h"
#include "viewer/panels/report_text.h"
#include "viewer/panels/what_if_panel.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace {

class Charts : public Page {
 protected:
  void click(QWidget* widget, const QPoint& at) { QTest::mouseClick(widget, Qt::LeftButton, {}, at); }
};

TEST_F(Charts, TheHeatMapShowsTheSlowRankAndLeadsToItsIteration) {
  auto* map = open<HeatMap>("Heat map");
  const HeatValues& values = map->values();
  EXPECT_TRUE(values.lateness);
  ASSERT_EQ(values.ranks, 4u);
  ASSERT_GE(values.numbers.size(), 6u);
  for (std::size_t column = 0; column < values.numbers.size(); ++column) {
    for (const std::size_t rank : {0u, 1u, 3u}) EXPECT_GT(values.at(2, column), values.at(rank, column));
  }
  const QImage picture = map->grab().toImage();
  const auto colour_of = [&](std::size_t rank) { return picture.pixelColor(map->cell(rank, 1).center()); };
  EXPECT_GT(colour_of(2).red(), colour_of(2).blue() + 50) << "orange: late";
  click(map, map->cell(2, 3).center());
  const analysis::Iteration& iteration = page->run().index->iterations(2)[std::size_t(values.numbers[3])];
  EXPECT_EQ(iteration.number, values.numbers[3]);
  const TimeRange view = state().time.axis().visible();
  EXPECT_LT(view.begin_ns, double(iteration.start_ns));
  EXPECT_GT(view.end_ns, double(iteration.start_ns + iteration.duration_ns));
  EXPECT_TRUE(map->accessibleDescription().startsWith("Rank 2, iteration")) << "for screen readers";
  QTest::keyClick(map, Qt::Key_Up);
  EXPECT_TRUE(map->accessibleDescription().startsWith("Rank 1, iteration"));
}

TEST_F(Charts, TheHistogramHasAllSlicesOfTheSelectedName) {
  auto* histogram = open<Histogram>("Histogram");
  EXPECT_TRUE(histogram->status().startsWith("Select a slice"));
  state().selection.select(first_named("backward", 0));
  finish();
  const Durations& durations = histogram->durations();
  EXPECT_EQ(durations.sketch.count(), 32u);
  std::uint64_t in_bars = 0;
  for (const auto& bar : durations.bars) in_bars += bar.count;
  EXPECT_EQ(in_bars, 32u);
  EXPECT_TRUE(histogram->status().contains("median"));
  const std::int64_t longest = durations.sketch.maximum_ns();
  const QRect last = histogram->bar(durations.bars.size() - 1);
  click(histogram, {last.center().x(), last.bottom() - 1});
  ASSERT_TRUE(state().selection.slice());
  EXPECT_EQ(slices_of(page->run(), *state().selection.slice()).duration_ns[state().selection.slice()->slice], longest);
}

TEST(Durations, AreInTheBarWhoseRangeTheyAreIn) {
  for (const std::int64_t ns : {1, 2, 3, 1000, 123'456'789}) {
    const int bar = Durations::bar_of(ns);
    EXPECT_LE(Durations::begin_of(bar), double(ns) * (1 + 1e-12));
    EXPECT_GT(Durations::begin_of(bar + 1), double(ns));
  }
}

TEST_F(Charts, TheFlameGraphAddsUpWhatIsInsideWhat) {
  auto* graph = open<FlameGraph>("Flame graph");
  const auto& nodes = graph->nodes();
  const auto named = [&](const char* name) {
    const auto id = page->run().trace.names.find(name);
    return std::uint32_t(std::ranges::find(nodes, id, &FlameNode::name) - nodes.begin());
  };
  const std::uint32_t iteration = named("iteration"), backward = named("backward");
  ASSERT_LT(backward, nodes.size());
  EXPECT_EQ(nodes[iteration].count, 32u);
  EXPECT_EQ(nodes[backward].parent, iteration);
  std::int64_t inside = 0;
  for (const std::uint32_t child : nodes[iteration].children) inside += nodes[child].total_ns;
  EXPECT_LE(inside, nodes[iteration].total_ns);
  ASSERT_TRUE(graph->chart().box_of(backward));
  click(&graph->chart(), graph->chart().box_of(backward)->center());
  EXPECT_EQ(*state().selection.slice(), nodes[backward].longest);
  const int width = graph->chart().box_of(backward)->width();
  graph->chart().zoom_to(iteration);
  EXPECT_GT(graph->chart().box_of(backward)->width(), width);
}

TEST_F(Charts, TheFlameGraphOfARangeCutsWhatReachesBeyondIt) {
  auto* graph = open<FlameGraph>("Flame graph");
  const SliceRef slice = first_named("backward", 1);
  const auto& slices = slices_of(page->run(), slice);
  const double begin = double(slices.start_ns[slice.slice]), length = double(slices.duration_ns[slice.slice]);
  state().selection.select_range(TimeRange{begin + std::floor(length / 4), begin + std::floor(length / 2)}, {1});
  finish();
  const auto id = page->run().trace.names.find("backward");
  const auto found = std::ranges::find(graph->nodes(), id, &FlameNode::name);
  ASSERT_NE(found, graph->nodes().end());
  EXPECT_NEAR(double(found->total_ns), length / 4, 2);
  EXPECT_EQ(found->count, 1u);
}

TEST_F(Charts, WhatIfPredictsWhatTheControlsAskFor) {
  auto* panel = open<WhatIfPanel>("What-if");
  EXPECT_FALSE(panel->changes().any());
  EXPECT_TRUE(panel->text().contains("predictions of the report")) << panel->text().toStdString();
  const auto control = [&](const QString& text) {
    const auto boxes = panel->findChildren<QAbstractButton*>();
    return *std::ranges::find(boxes, text, &QAbstractButton::text);
  };
  control("transfers take no time")->click();
  finish();
  EXPECT_TRUE(panel->text().contains("A step takes")) << panel->text().toStdString();
  EXPECT_TRUE(panel->text().contains("paceline whatif four --free-communication"));
  panel->findChild<QSlider*>()->setValue(10);
  finish();
  EXPECT_TRUE(panel->text().contains("--bandwidth 10 --free-communication"));
  EXPECT_FALSE(panel->text().contains("check the accuracy")) << "faster transfers do not alter the training";
  control("16-bit gradients")->click();
  finish();
  EXPECT_TRUE(panel->text().contains("It alters the training, so check the accuracy."));
  control("Back to the recorded run")->click();
  finish();
  EXPECT_FALSE(panel->changes().any());
  EXPECT_TRUE(panel->text().contains("twice the ranks (check the accuracy)")) << panel->text().toStdString();
  EXPECT_TRUE(panel->text().contains("predictions of the report"));
}

TEST_F(Charts, TheReportIsThatOfTheCommandLine) {
  auto* panel = open<ReportPanel>("Report");
  const QString verdict = QString::fromStdString(page->document().report()->verdict.state).left(30);
  const QString text = panel->text().toPlainText();
  EXPECT_TRUE(text.contains(verdict)) << text.left(500).toStdString();
  EXPECT_FALSE(text.contains('\\') || text.contains("**") || text.contains("|---")) << text.toStdString();
}

TEST_F(Charts, TheReportIsLaidOutOnlyWhereItIsSeen) {
  auto* panel = open<ReportPanel>("Report");
  panel->text().grab();
  int laid_out = 0;
  const QTextDocument& text = *panel->text().document();
  for (QTextBlock block = text.begin(); block.isValid(); block = block.next()) {
    laid_out += block.layout()->lineCount() > 0;
  }
  EXPECT_GT(laid_out, 3);
  EXPECT_LT(3 * laid_out, text.blockCount());
}

TEST_F(Charts, WordsOfTheReportAreFoundAndCopied) {
  auto* panel = open<ReportPanel>("Report");
  auto* words = panel->findChild<QLineEdit*>();
  QTest::keyClicks(words, "RANK 2");
  EXPECT_EQ(panel->text().textCursor().selectedText().toLower(), "rank 2");
  const int first = panel->text().textCursor().position();
  QTest::keyClick(words, Qt::Key_Return);
  EXPECT_GT(panel->text().textCursor().position(), first);
  for (int i = 0; i < 100 && panel->text().textCursor().position() != first; ++i) {
    QTest::keyClick(words, Qt::Key_Return);
  }
  EXPECT_EQ(panel->text().textCursor().position(), first) << "from the beginning after the last place";
  panel->text().copy();
  EXPECT_EQ(QApplication::clipboard()->text().toLower(), "rank 2");
}

TEST_F(Charts, TheReportAlignsColumnsAndWrapsOnlySentences) {
  const auto made = report_document(*page->document().report(), QFont("DejaVu Sans"), QFont("DejaVu Sans Mono"));
  QPlainTextEdit view;
  view.setDocument(made.get());
  view.resize(300, 400);
  view.grab();
  const QStringList lines = view.toPlainText().split('\n');
  EXPECT_EQ(lines[0], "Paceline report");
  const auto verdict = QString::fromStdString(page->document().report()->verdict.state);
  EXPECT_TRUE(lines[2].startsWith(verdict)) << lines[2].toStdString();
  EXPECT_GT(made->findBlockByNumber(2).layout()->lineCount(), 1);
  const auto title = lines.indexOf("Who waits for whom");
  ASSERT_GT(title, 0);
  for (qsizetype line = title + 1; line <= title + 5; ++line) {
    EXPECT_EQ(lines[line].size(), lines[title + 1].size()) << "the last column is on the right";
    const QTextBlock row = made->findBlockByNumber(int(line));
    made->documentLayout()->blockBoundingRect(row);
    EXPECT_EQ(row.layout()->lineCount(), 1);
  }
  EXPECT_TRUE(lines[title + 1].startsWith("rank"));
  EXPECT_GT(view.horizontalScrollBar()->maximum(), 100) << "the table can be scrolled";
}

TEST_F(Charts, TheHandlesOfTheOverviewMoveOneEndOfTheView) {
  auto* overview = page->findChild<Overview*>();
  state().time.show_iterations(2, 4);
  const TimeRange before = state().time.axis().visible();
  const QPoint handle(overview->right_handle(), overview->height() / 2);
  const auto drag = [&](const QPoint& from, const QPoint& to) {
    QTest::mousePress(overview, Qt::LeftButton, {}, from);
    QMouseEvent move(QEvent::MouseMove, QPointF(to), overview->mapToGlobal(QPointF(to)), Qt::NoButton, Qt::LeftButton,
                     {});
    QCoreApplication::sendEvent(overview, &move);
    QTest::mouseRelease(overview, Qt::LeftButton, {}, to);
  };
  drag(handle, handle + QPoint(100, 0));
  EXPECT_EQ(state().time.axis().visible().begin_ns, before.begin_ns);
  EXPECT_GT(state().time.axis().visible().end_ns, before.end_ns);
  drag({overview->left_handle(), 10}, {overview->left_handle() - 50, 10});
  EXPECT_LT(state().time.axis().visible().begin_ns, before.begin_ns);
}

TEST_F(Charts, TheOverviewShowsTheArrivalSkew) {
  const auto& skew = page->findChild<Overview*>()->skew_ns();
  ASSERT_FALSE(skew.empty());
  std::int64_t longest = 0;
  for (const WaitTimeline& rank : page->document().insight()->waits) {
    for (const Wait& wait : rank.between(page->run().begin_ns, page->run().end_ns)) {
      longest = std::max(longest, wait.length_ns());
    }
  }
  EXPECT_EQ(*std::ranges::max_element(skew), double(longest));
}

}  // namespace
}  // namespace paceline::viewer
