// SPDX-License-Identifier: Apache-2.0
// Every text on every panel and in every dialog can be read: a contrast of at least 4.5 to 1 to what is below it (WCAG
// 2.1, AA), in the light and in the dark theme.
#include <gtest/gtest.h>

#include <QFile>
#include <QTemporaryDir>
#include <algorithm>
#include <set>
#include <string>

#include "tests/unit/analysis/merge_files.h"
#include "tests/unit/viewer/painted_texts.h"
#include "tests/unit/viewer/user.h"
#include "viewer/comparison/choose_runs.h"
#include "viewer/drawing/appearance.h"
#include "viewer/merging/merge_dialog.h"
#include "viewer/panels/panel.h"
#include "viewer/window/command_palette.h"
#include "viewer/window/go_to_dialog.h"
#include "viewer/window/loading_page.h"
#include "viewer/window/shortcuts.h"

namespace paceline::viewer {
namespace {

void expect_readable(QWidget& widget, const QString& where, std::size_t least) {
  const auto texts = painted_texts(widget);
  EXPECT_GE(texts.size(), least) << where.toStdString();
  std::set<std::string> pale;  // each text once
  for (const PaintedText& text : texts) {
    if (text.contrast >= 4.5) continue;
    pale.insert(QString("%1: \"%2\" has %3:1 (%4 on %5)")
                    .arg(where, text.text)
                    .arg(text.contrast, 0, 'f', 2)
                    .arg(QColor(text.colour).name(), QColor(text.below).name())
                    .toStdString());
  }
  for (const std::string& one : pale) ADD_FAILURE() << one;
}

// The name of a theme.
class Contrast : public testing::TestWithParam<const char*> {
 protected:
  Contrast() { apply_theme(GetParam()); }
  ~Contrast() override { apply_theme("light"); }

  template <class Dialog>
  void expect_dialog_readable(Dialog& dialog, const char* name, std::size_t least) {
    dialog.show();
    QTest::qWait(0);
    expect_readable(dialog, name, least);
  }
};

TEST_P(Contrast, OfTextsOnEveryPanelIsEnough) {
  User page(run_with_texts(4));
  page.state().arrangement.set_all_counters_unfolded(true);
  const double at_ns = page.state().time.range_of_iterations(2, 2)->begin_ns;
  page.state().time.set_bookmarks({{.time_ns = at_ns, .text = "a note"}});
  const SliceRef slice = page.first_named("backward", 1);
  page.state().time.show_iterations(2, 3);
  for (const bool selected : {false, true}) {
    if (selected) {
      page.state().selection.select(slice);
      page.state().selection.toggle(page.first_named("forward", 2));
      page.state().selection.select_range(page.state().time.range_of_iterations(2, 2), {0, 1});
      page.state().time.mark_time(at_ns + 1e7);
      Q_EMIT page.state().commands.search_wanted("forward");
      page.finish();
      page.state().time.show_iterations(2, 3);  // the search went to its first hit
      page.state().selection.select(slice);
    }
    for (const PanelKind& kind : panel_kinds()) {
      if (kind.place != PanelKind::Place::tab) continue;
      Q_EMIT page.state().commands.panel_wanted(kind.title);
      page.finish();
      page.window.grab();  // asks for what is drawn for the first time
      page.finish();
      expect_readable(page.window, QString("%1, %2").arg(GetParam(), kind.title), 60);
      const auto texts = painted_texts(page.window);
      for (const QString& drawn : {QString("Rank 1"), QString("a note"), QString("backward"), QString("Iterations")}) {
        EXPECT_TRUE(std::ranges::any_of(texts, [&](const auto& text) { return text.text == drawn; }))
            << drawn.toStdString();
      }
    }
  }
}

TEST_P(Contrast, OfTextsOfComparedRunsIsEnough) {
  Window window;
  window.resize(1400, 900);
  ComparisonPage* page = window.show_comparison(four_ranks(), four_ranks());
  window.show();
  page->finish();
  page->coupling().select_iteration(3);
  page->finish();
  QTest::qWait(0);
  expect_readable(window, QString("%1, comparison").arg(GetParam()), 60);
}

TEST_P(Contrast, OfTextsInDialogsIsEnough) {
  GoToDialog go_to(*four_ranks(), true);
  expect_dialog_readable(go_to, "go to", 1);
  go_to.findChild<QLineEdit*>()->setText("rank 99");
  expect_dialog_readable(go_to, "go to, nothing found", 2);
  go_to.findChild<QLineEdit*>()->setText("1");
  expect_dialog_readable(go_to, "go to, several found", 3);
  CommandPalette palette;
  expect_dialog_readable(palette, "palette", 10);
  ShortcutSheet sheet;
  expect_dialog_readable(sheet, "sheet", 60);
  ChooseRuns choose({"/runs/a"});
  expect_dialog_readable(choose, "choose runs", 4);
  LoadingPage loading("/runs/a");
  loading.show_rank("rank 3", 40);
  expect_dialog_readable(loading, "loading", 2);
  QTemporaryDir directory;
  const QString trace = directory.path() + "/a.pace", other = directory.path() + "/notes.txt";
  analysis::write_recorded(trace.toStdString(), {.rank = 0, .recording = 1});
  QFile notes(other);
  ASSERT_TRUE(notes.open(QIODevice::WriteOnly) && notes.write("no trace") > 0);
  notes.close();
  MergeDialog merge({trace, other});
  merge.finish();
  expect_dialog_readable(merge, "merge", 12);
  Window empty;
  empty.show();
  expect_readable(empty, "empty window", 6);
}

INSTANTIATE_TEST_SUITE_P(In, Contrast, testing::Values("light", "dark"),
                         [](const auto& info) { return std::string(info.param); });

TEST(PaintedTexts, HaveTheContrastToWhatIsBelowThem) {
  class Two : public QWidget {
    void paintEvent(QPaintEvent*) override {
      QPainter painter(this);
      painter.fillRect(0, 0, 200, 50, Qt::white);
      painter.fillRect(0, 50, 200, 50, Qt::black);
      painter.setPen(QColor(0x777777));
      painter.drawText(10, 30, "above");
      painter.drawText(10, 80, "below");
    }
  };
  Two widget;
  widget.resize(200, 100);
  const auto texts = painted_texts(widget);
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].text, "above");
  EXPECT_NEAR(texts[0].contrast, contrast(0xff777777, 0xffffffff), 0.01);
  EXPECT_NEAR(texts[1].contrast, contrast(0xff777777, 0xff000000), 0.01);
}

}  // namespace
}  // namespace paceline::viewer
