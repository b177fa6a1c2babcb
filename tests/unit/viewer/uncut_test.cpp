// SPDX-License-Identifier: Apache-2.0
// No text on any panel is cut by the edge of what it stands on, at the sizes of usual screens: it has room, wraps,
// scrolls, or is shortened to "…". Numbers in tables are never shortened. The last sizes are those of screens of
// 1366 × 768 with five pixels for four, and of 1920 × 1080, 1366 × 768 and 1024 × 700 with two for one.
#include <gtest/gtest.h>

#include <QAbstractScrollArea>
#include <QHeaderView>
#include <QRegularExpression>
#include <QScrollBar>
#include <QTabBar>
#include <QTableView>
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/painted_texts.h"
#include "tests/unit/viewer/user.h"
#include "viewer/drawing/appearance.h"
#include "viewer/panels/panel.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {
namespace {

// Whether the text is in a scrolled part and partly outside of it, or in a row of the timeline, whose rows may be lower
// than a line of text and go on behind the ruler and the lower edge.
bool is_scrolled(const QWidget& window, const PaintedText& text) {
  for (const auto* area : window.findChildren<QAbstractScrollArea*>()) {
    const QWidget* part = area->viewport();
    const QRect room(part->mapTo(&window, QPoint()), part->size());
    if (!part->isVisible() || !room.intersects(text.box)) continue;
    const auto* titles = dynamic_cast<const QHeaderView*>(area);  // scrolls with its table
    const bool scrolls = area->horizontalScrollBar()->maximum() > 0 || area->verticalScrollBar()->maximum() > 0 ||
                         (titles != nullptr && titles->length() > part->width());
    if (scrolls && !room.contains(text.box)) return true;
    if (dynamic_cast<const TimelineWidget*>(area) != nullptr && text.visible.width() == text.box.width()) return true;
  }
  return false;
}

// The numbers of cells that are wholly in view and that are painted otherwise.
QStringList changed_numbers(QWidget& window, const std::set<QString>& painted) {
  static const QRegularExpression number("^[+−]?[0-9][0-9,.]*( (ns|µs|ms|s|%|kB|MB|GB))?$");
  QStringList changed;
  for (auto* table : window.findChildren<QTableView*>()) {
    const QAbstractItemModel* model = table->model();
    for (int row = 0; model != nullptr && is_seen(table->viewport()) && row < model->rowCount(); ++row) {
      for (int column = 0; column < model->columnCount(); ++column) {
        const QModelIndex cell = model->index(row, column);
        const QRect box = table->visualRect(cell);
        if (box.isEmpty() || !table->viewport()->rect().contains(box)) continue;
        const QString text = cell.data().toString();
        if (number.match(text).hasMatch() && !painted.contains(text)) changed << text;
      }
    }
  }
  return changed;
}

class Uncut : public testing::TestWithParam<const char*> {
 protected:
  Uncut() { apply_theme(GetParam()); }
  ~Uncut() override { apply_theme("light"); }
};

TEST_P(Uncut, TextsOfEveryPanelHaveRoom) {
  User page(run_with_texts(12));
  page.state().arrangement.set_all_counters_unfolded(true);
  page.state().selection.select(page.first_named("backward", 1));
  std::set<std::string> cut;
  std::size_t seen = 0;
  for (const QSize size : {QSize(1024, 700), QSize(1366, 768), QSize(1920, 1080), QSize(1093, 614), QSize(960, 540),
                           QSize(683, 384), QSize(512, 350)}) {
    page.window.resize(size);
    page.finish();
    page.state().arrangement.set_panels_shown(true);
    for (const PanelKind& kind : panel_kinds()) {
      if (kind.place != PanelKind::Place::tab) continue;
      Q_EMIT page.state().commands.panel_wanted(kind.title);
      page.finish();
      page.window.grab();  // asks for what is drawn for the first time
      page.finish();
      std::set<QString> painted;
      for (const PaintedText& text : painted_texts(page.window)) {
        ++seen;
        painted.insert(text.text);
        // Fonts may reach a pixel beyond their box.
        if (text.visible.contains(text.box.adjusted(1, 2, -1, -2)) || is_scrolled(page.window, text)) continue;
        cut.insert(QString("%1×%2, %3: \"%4\" needs %5 pixels and has %6")
                       .arg(size.width())
                       .arg(size.height())
                       .arg(kind.title, text.text)
                       .arg(text.box.width())
                       .arg(text.visible.width())
                       .toStdString());
      }
      for (const QString& text : changed_numbers(page.window, painted)) {
        cut.insert(
            QString("%1, %2: the number \"%3\" is not painted").arg(size.width()).arg(kind.title, text).toStdString());
      }
    }
  }
  for (const std::string& one : cut) ADD_FAILURE() << one;
  EXPECT_GT(seen, 4000u);
}

TEST(Names, OfStreamsAreWholeAndLongerOnesAreCutAtTheirEnd) {
  const QString stream = "GPU 0 stream 18 (communication)", thread = "a thread whose name is longer than its column";
  analysis::TraceBuilder run;
  analysis::RankBuilder& rank = run.add_rank(0);
  rank.add_main_thread().add_slice(0, 1'000'000, "step", "mine");
  for (const auto& [kind, name] :
       {std::pair(analysis::TrackKind::thread, thread), {analysis::TrackKind::stream, stream}}) {
    rank.add_track(kind, name.toStdString(), 18).add_slice(0, 1'000'000, "work", "mine");
  }
  User page(index_run("names", run.finish()));
  page.window.grab();
  bool whole = false, cut = false;
  for (const PaintedText& text : painted_texts(page.window)) {
    whole = whole || text.text == stream;
    cut = cut || (text.text.endsWith("…") && text.text.size() > 20 && thread.startsWith(text.text.chopped(1)));
  }
  EXPECT_TRUE(whole);
  EXPECT_TRUE(cut);
}

TEST(Tabs, OfAllPanelsFitIntoTheScreenOfASmallLaptop) {
  for (const char* theme : {"", "light"}) {
    apply_theme(theme);
    User page(run_with_texts(2), {1366, 768});
    page.finish();
    std::size_t bars = 0;
    for (const QTabBar* bar : page.window.findChildren<QTabBar*>()) {
      if (bar->count() < 10) continue;
      ++bars;
      EXPECT_LE(bar->tabRect(bar->count() - 1).right(), bar->width()) << "theme " << theme;
    }
    EXPECT_EQ(bars, 1u);
  }
  apply_theme("light");
}

INSTANTIATE_TEST_SUITE_P(In, Uncut, testing::Values("light", "dark"));

}  // namespace
}  // namespace paceline::viewer
