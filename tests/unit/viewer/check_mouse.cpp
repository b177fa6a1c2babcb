// SPDX-License-Identifier: Apache-2.0
// Checks of what the mouse does, and of the keys of the search field.
#include <QDropEvent>
#include <QHeaderView>
#include <QMimeData>
#include <QScrollBar>
#include <QTabWidget>
#include <QTemporaryDir>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/user.h"
#include "viewer/panels/table_panel.h"

namespace paceline::viewer {
namespace check_mouse {

constexpr TimeRange part{2e8, 3e8};

std::shared_ptr<const Run> ten_ranks() {
  static const auto run = index_run("ten", simulate({.ranks = 10, .iterations = 2, .layers = false, .hosts = 2}));
  return run;
}

std::shared_ptr<const Run> run_with_counters() {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.add_main_thread().add_slice(0, 900'000'000, "work");
  analysis::TrackBuilder& cpu = rank.add_counter("CPU time", "µs", "", true);
  analysis::TrackBuilder& memory = rank.add_counter("memory", "bytes", "", false);
  for (int sample = 0; sample <= 900; ++sample) {
    cpu.add_sample(sample * 1'000'000, 400.0 * sample);
    memory.add_sample(sample * 1'000'000, 1e6);
  }
  return index_run("counters", builder.finish());
}

double zoomed(Qt::KeyboardModifiers held) {
  User user;
  user.state().time.show_part(part);
  const QPoint point = user.at(0.3, 200);
  const double time = user.timeline->geometry().time_at(point.x());
  user.turn_wheel(point, 1, held);
  EXPECT_NEAR(user.timeline->geometry().time_at(point.x()), time, 1) << "the time at the pointer stays there";
  return user.length() / part.length();
}

// The hit that is selected after the key in the search field, of those that the text has.
void check_hit(const QString& keys, bool first) {
  User user;
  user.press("Ctrl+F");
  QTest::keyClicks(QApplication::focusWidget(), "optimizer");
  user.press(keys);
  ASSERT_EQ(user.selected_name(), "optimizer");
  const auto start = [&](const SliceRef& slice) { return slices_of(user.page->run(), slice).start_ns[slice.slice]; };
  const std::int64_t selected = start(*user.state().selection.slice());
  for (const SliceRef& hit : *user.state().selection.hits()) {
    EXPECT_TRUE(first ? selected <= start(hit) : selected >= start(hit));
  }
}

const ActionChecks all{
    {"Wheel", [](const QString&) { EXPECT_NEAR(zoomed({}), 1 / 1.35, 1e-6); }},
    {"Ctrl + wheel", [](const QString&) { EXPECT_NEAR(zoomed(Qt::ControlModifier), 1 / 1.1, 1e-6); }},
    {"Shift + wheel, drag",
     [](const QString&) {
       User user;
       user.state().time.show_part(part);
       user.turn_wheel(user.at(0.5, 200), -1, Qt::ShiftModifier);
       EXPECT_GT(user.view().begin_ns, part.begin_ns);
       user.state().time.show_part(part);
       user.drag(user.at(0.5, 200), user.at(0.3, 200));
       EXPECT_NEAR(user.view().begin_ns - part.begin_ns, 0.2 * part.length(),
                   2 * user.state().time.axis().ns_per_pixel());
       EXPECT_NEAR(user.length(), part.length(), 1);
     }},
    {"Ctrl + Shift + wheel, wheel over the names",
     [](const QString&) {
       User user(four_ranks(), {900, 420});
       const QScrollBar* bar = user.timeline->verticalScrollBar();
       user.turn_wheel(user.at(0.5, 100), -1, Qt::ShiftModifier | Qt::ControlModifier);
       const int scrolled = bar->value();
       EXPECT_GT(scrolled, 0);
       user.turn_wheel({20, 100}, 1);
       EXPECT_LT(bar->value(), scrolled);
     }},
    {"Drag the edge of the names",
     [](const QString&) {
       User user;
       const int width = user.state().time.names_width();
       user.drag({width, 100}, {width + 90, 100});
       EXPECT_EQ(user.state().time.names_width(), width + 90);
     }},
    {"Click",
     [](const QString&) {
       User user;
       const SliceRef slice = user.first_named("backward", 1);
       user.click(user.middle_of(slice));
       EXPECT_EQ(user.state().selection.slice(), slice);
     }},
    {"Ctrl + click, Shift + click",
     [](const QString&) {
       User user;
       const SliceRef first = user.first_named("backward", 0), other = user.first_named("backward", 1);
       for (const Qt::KeyboardModifier held : {Qt::ControlModifier, Qt::ShiftModifier}) {
         user.click(user.middle_of(first));
         user.click(user.middle_of(other), held);
         EXPECT_EQ(user.state().selection.slices(), (std::vector<SliceRef>{first, other}));
         user.click(user.middle_of(first), held);
         EXPECT_EQ(user.state().selection.slices(), std::vector<SliceRef>{other});
       }
     }},
    {"Double click",
     [](const QString&) {
       User user;
       const SliceRef slice = user.first_named("backward", 1);
       QTest::mouseDClick(user.timeline->viewport(), Qt::LeftButton, {}, user.middle_of(slice));
       EXPECT_NEAR(user.length(), 1.5 * double(slices_of(user.page->run(), slice).duration_ns[slice.slice]), 2);
     }},
    {"Shift + drag",
     [](const QString&) {
       User user;
       user.drag(user.at(0.2, 2), user.at(0.4, 2), Qt::ShiftModifier);  // in the ruler, where nothing snaps
       ASSERT_TRUE(user.state().selection.range());
       EXPECT_NEAR(user.state().selection.range()->length(), 0.2 * user.length(),
                   2 * user.state().time.axis().ns_per_pixel());
       EXPECT_TRUE(user.state().selection.ranks().empty()) << "it concerns all ranks";
     }},
    {"Ctrl + drag",
     [](const QString&) {
       User user;
       user.drag(user.at(0.2, user.strip_y(1)), user.at(0.4, user.strip_y(2)), Qt::ControlModifier);
       EXPECT_TRUE(user.state().selection.range());
       EXPECT_EQ(user.state().selection.ranks(), (std::set<std::size_t>{1, 2}));
     }},
    {"Drag an edge of the range",
     [](const QString&) {
       User user;
       user.state().time.show_part(part);
       user.state().selection.select_range(TimeRange{2.2e8, 2.4e8});
       const Geometry geometry = user.timeline->geometry();
       user.drag({geometry.x_of(2.4e8), 2}, {geometry.x_of(2.6e8), 2});
       EXPECT_EQ(user.state().selection.range()->begin_ns, 2.2e8);
       EXPECT_NEAR(user.state().selection.range()->end_ns, 2.6e8, user.state().time.axis().ns_per_pixel());
       EXPECT_EQ(user.view(), part);
     }},
    {"Return", [](const QString& keys) { check_hit(keys, true); }},
    {"Shift+Return", [](const QString& keys) { check_hit(keys, false); }},
    {"Click on a rank's name",
     [](const QString&) {
       User user;
       user.click({60, user.strip_y(2)});
       EXPECT_TRUE(user.state().arrangement.collapsed(2));
       user.click({60, user.strip_y(2)});
       EXPECT_FALSE(user.state().arrangement.collapsed(2));
     }},
    {"Click on \"CPU time\"",
     [](const QString&) {
       User user(run_with_counters());
       const PlacedRow& counters = user.timeline->rows().rows_of(0).back();
       user.click({60, user.timeline->geometry().y_of(counters.y) + 5});
       EXPECT_TRUE(user.state().arrangement.counters_unfolded(0));
     }},
    {"Click on a host's name",
     [](const QString&) {
       User user(ten_ranks());
       const PlacedRow& host = user.timeline->rows().rows().front();
       ASSERT_EQ(user.timeline->rows().ranks().size(), 10u);
       user.click({60, user.timeline->geometry().y_of(host.y) + 5});
       EXPECT_EQ(user.timeline->rows().ranks().size(), 5u);
     }},
    {"Click on a row, a cell, a bar or a box",
     [](const QString&) {
       User user;
       auto* panel = user.open<TablePanel>("Collectives");
       QTableView& view = panel->view();
       const TimeRange before = user.view();
       QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, view.visualRect(view.model()->index(1, 0)).center());
       EXPECT_NE(user.view(), before);
     }},
    {"Click on a column's title",
     [](const QString&) {
       User user;
       auto* panel = user.open<TablePanel>("Ranks");
       EXPECT_EQ(panel->model().texts(0).front(), "2") << "the one that made the others wait";
       QHeaderView* titles = panel->view().horizontalHeader();
       const int rank_column = 0;
       for (int click = 0; click < 2; ++click) {
         const QPoint title(titles->sectionViewportPosition(rank_column) + 8, titles->height() / 2);
         QTest::mouseClick(titles->viewport(), Qt::LeftButton, {}, title);
         EXPECT_EQ(panel->model().texts(0).front(), click == 0 ? "0" : "3");
       }
     }},
    {"Drop files on the window",
     [](const QString&) {
       User user;
       QTemporaryDir directory;
       QMimeData data;
       data.setUrls({QUrl::fromLocalFile(directory.path())});
       QDragEnterEvent enter(QPoint(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
       QCoreApplication::sendEvent(&user.window, &enter);
       QDropEvent drop(QPointF(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
       QCoreApplication::sendEvent(&user.window, &drop);
       EXPECT_EQ(user.window.findChild<QTabWidget*>()->count(), 2);
     }},
};

}  // namespace check_mouse

const ActionChecks& checks_of_mouse() { return check_mouse::all; }

}  // namespace paceline::viewer
