// SPDX-License-Identifier: Apache-2.0
// Checks of the actions that move the view, and find, sort, fold and hide rows.
#include <QScrollBar>
#include <QTabBar>
#include <algorithm>

#include "tests/unit/viewer/user.h"
#include "viewer/drawing/appearance.h"
#include "viewer/drawing/palette.h"
#include "viewer/session/recent_runs.h"
#include "viewer/window/go_to_dialog.h"

namespace paceline::viewer {
namespace check_moves {

constexpr TimeRange part{2e8, 3e8};
using Order = Arrangement::RankOrder;

double middle(User& user) { return (user.view().begin_ns + user.view().end_ns) / 2; }

// By what factor the length of the view changes.
double zoomed(const QString& keys) {
  User user;
  user.state().time.show_part(part);
  user.press(keys);
  return user.length() / part.length();
}

double moved_ns(const QString& keys) {
  User user;
  user.state().time.show_part(part);
  user.press(keys);
  EXPECT_NEAR(user.length(), part.length(), 1);
  return user.view().begin_ns - part.begin_ns;
}

void check_iteration(const QString& keys, std::int64_t from, std::int64_t to) {
  User user;
  ASSERT_TRUE(user.state().time.show_iterations(from, from));
  user.press(keys);
  const TimeRange wanted = *user.state().time.range_of_iterations(to, to);
  EXPECT_LE(user.view().begin_ns, wanted.begin_ns);
  EXPECT_GE(user.view().end_ns, wanted.end_ns);
  EXPECT_LT(user.length(), 1.2 * wanted.length());
}

void check_bookmark(const QString& keys, double from_ns, double to_ns) {
  User user;
  user.state().time.set_bookmarks({{.time_ns = 2.0e8, .text = {}}, {.time_ns = 6.0e8, .text = {}}});
  user.state().time.show_part({from_ns - 1e7, from_ns + 1e7});
  user.press(keys);
  EXPECT_NEAR(middle(user), to_ns, 1);
}

void check_page(const QString& keys, bool down) {
  User user(four_ranks(), {900, 420});
  QScrollBar* bar = user.timeline->verticalScrollBar();
  ASSERT_GT(bar->maximum(), 0);
  bar->setValue(down ? 0 : bar->maximum());
  const int before = bar->value();
  user.press(keys);
  EXPECT_EQ(bar->value() > before, down);
  EXPECT_NE(bar->value(), before);
}

void check_order(const QString& keys, Order order) {
  User user;
  user.state().arrangement.sort_ranks(order == Order::number ? Order::host : Order::number);
  user.press(keys);
  EXPECT_EQ(user.state().arrangement.rank_order(), order);
}

bool is_dark(const QString& keys, const QString& before) {
  User user;
  user.press(before);
  user.press(keys);
  return Theme::of(user.window.palette()).dark;
}

void check_rank_moved(const QString& keys, std::size_t rank, std::vector<std::size_t> order) {
  User user;
  user.select("forward", rank);
  user.press(keys);
  EXPECT_EQ(user.state().arrangement.groups().front().ranks, order);
}

const ActionChecks all{
    {"F",
     [](const QString& keys) {
       User user;
       user.state().time.show_part(part);
       user.press(keys);
       EXPECT_EQ(user.view(), user.state().time.axis().whole());
     }},
    {"Backspace",
     [](const QString& keys) {
       User user;
       const TimeRange before = user.view();
       user.state().time.jump_to(part);
       user.press(keys);
       EXPECT_EQ(user.view(), before);
     }},
    {"Shift+Backspace",
     [](const QString& keys) {
       User user;
       user.state().time.jump_to(part);
       user.state().time.show_previous();
       user.press(keys);
       EXPECT_EQ(user.view(), part);
     }},
    {"Ctrl++ Ctrl+=", [](const QString& keys) { EXPECT_NEAR(zoomed(keys), 0.5, 1e-6); }},
    {"Ctrl+-", [](const QString& keys) { EXPECT_NEAR(zoomed(keys), 2, 1e-6); }},
    {"W + =", [](const QString& keys) { EXPECT_NEAR(zoomed(keys), 1 / 1.5, 1e-6); }},
    {"S -", [](const QString& keys) { EXPECT_NEAR(zoomed(keys), 1.5, 1e-6); }},
    {"A", [](const QString& keys) { EXPECT_LT(moved_ns(keys), 0); }},
    {"D", [](const QString& keys) { EXPECT_GT(moved_ns(keys), 0); }},
    {"Home",
     [](const QString& keys) {
       User user;
       user.state().time.show_part(part);
       user.press(keys);
       EXPECT_EQ(user.view().begin_ns, user.state().time.axis().whole().begin_ns);
     }},
    {"End",
     [](const QString& keys) {
       User user;
       user.state().time.show_part(part);
       user.press(keys);
       EXPECT_EQ(user.view().end_ns, user.state().time.axis().whole().end_ns);
     }},
    {"PgUp", [](const QString& keys) { check_page(keys, false); }},
    {"PgDown", [](const QString& keys) { check_page(keys, true); }},
    {"]", [](const QString& keys) { check_iteration(keys, 3, 4); }},
    {"[", [](const QString& keys) { check_iteration(keys, 3, 2); }},
    {"Ctrl+Alt+W",
     [](const QString& keys) {
       const auto scrolled = [](User& user) {
         user.state().time.show_part(part);
         user.turn_wheel(user.at(0.5, 300), -1);
         return user.timeline->verticalScrollBar()->value();
       };
       User user(four_ranks(), {1000, 600});
       EXPECT_EQ(scrolled(user), 0);
       EXPECT_NE(user.length(), part.length());
       user.press(keys);
       EXPECT_GT(scrolled(user), 0);
       EXPECT_EQ(user.length(), part.length());
       user.turn_wheel(user.at(0.5, 300), 1, Qt::ControlModifier);
       EXPECT_LT(user.length(), part.length()) << "Ctrl still zooms";
       user.press(keys);
       EXPECT_FALSE(wheel_scrolls());
     }},
    {"M",
     [](const QString& keys) {
       User user;
       user.press(keys);
       ASSERT_EQ(user.state().time.bookmarks().size(), 1u);
       EXPECT_NEAR(user.state().time.bookmarks()[0].time_ns, middle(user), user.state().time.axis().ns_per_pixel());
       user.press(keys);
       EXPECT_TRUE(user.state().time.bookmarks().empty());
     }},
    {"N", [](const QString& keys) { check_bookmark(keys, 3e8, 6e8); }},
    {"Shift+N", [](const QString& keys) { check_bookmark(keys, 5e8, 2e8); }},

    {"Ctrl+F",
     [](const QString& keys) {
       User user;
       user.press(keys);
       EXPECT_EQ(QApplication::focusWidget()->accessibleName(), "Find slices by name");
     }},
    {"Ctrl+Shift+F",
     [](const QString& keys) {
       User user;
       user.page->findChild<QLineEdit*>()->setText("^forward$");
       user.press(keys);
       EXPECT_EQ(user.state().arrangement.filter(), "^forward$");
       EXPECT_FALSE(user.timeline->rows().row_of(user.first_named("backward", 0))) << "not shown";
       EXPECT_TRUE(user.timeline->rows().row_of(user.first_named("forward", 0)));
     }},
    {"Ctrl+E",
     [](const QString& keys) {
       User user;
       user.state().arrangement.set_all_collapsed(true);
       user.press(keys);
       for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_FALSE(user.state().arrangement.collapsed(rank));
     }},
    {"Ctrl+Shift+E",
     [](const QString& keys) {
       User user;
       user.press(keys);
       for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_TRUE(user.state().arrangement.collapsed(rank));
     }},
    {"Ctrl+U",
     [](const QString& keys) {
       User user;
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.counters_unfolded(3));
     }},
    {"Ctrl+Shift+U",
     [](const QString& keys) {
       User user;
       user.state().arrangement.set_all_counters_unfolded(true);
       user.press(keys);
       EXPECT_FALSE(user.state().arrangement.counters_unfolded(3));
     }},
    {"Ctrl+G",
     [](const QString& keys) {
       User user;
       user.answer<GoToDialog>([](GoToDialog& dialog) {
         QTest::keyClicks(dialog.findChild<QLineEdit*>(), "it 5");
         QTest::keyClick(dialog.findChild<QLineEdit*>(), Qt::Key_Return);
       });
       user.press(keys);
       const TimeRange wanted = *user.state().time.range_of_iterations(5, 5);
       ASSERT_TRUE(user.state().selection.range());
       EXPECT_NEAR(user.state().selection.range()->begin_ns, wanted.begin_ns, 0.1 * wanted.length());
       EXPECT_LT(user.length(), 1.2 * user.state().selection.range()->length());
     }},
    {"Ctrl+1", [](const QString& keys) { check_order(keys, Order::number); }},
    {"Ctrl+2", [](const QString& keys) { check_order(keys, Order::host); }},
    {"Ctrl+3", [](const QString& keys) { check_order(keys, Order::waiting_caused); }},
    {"Ctrl+4", [](const QString& keys) { check_order(keys, Order::duration); }},
    {"H",
     [](const QString& keys) {
       User user;
       user.state().selection.select(SliceRef{.rank = 1, .track = 1, .slice = 0});
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.hidden_rows().contains("loader"));
       EXPECT_FALSE(user.timeline->rows().row_of({.rank = 0, .track = 1, .slice = 0}));
     }},
    {"Shift+H",
     [](const QString& keys) {
       User user;
       user.select("forward", 1);
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.rank_hidden(1));
       EXPECT_EQ(user.timeline->rows().ranks().size(), 3u);
     }},
    {"Ctrl+H",
     [](const QString& keys) {
       User user;
       user.state().arrangement.hide_rows("loader");
       user.state().arrangement.set_rank_hidden(1, true);
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.hidden_rows().empty());
       EXPECT_FALSE(user.state().arrangement.rank_hidden(1));
     }},
    {"T",
     [](const QString& keys) {
       User user;
       user.press(keys);
       EXPECT_FALSE(user.state().arrangement.states_shown());
       user.press(keys);
       EXPECT_TRUE(user.state().arrangement.states_shown());
     }},
    {"Ctrl+Shift+Down",
     [](const QString& keys) {
       check_rank_moved(keys, 0, {1, 0, 2, 3});
     }},
    {"Ctrl+Shift+Up",
     [](const QString& keys) {
       check_rank_moved(keys, 3, {0, 1, 3, 2});
     }},
    {"Ctrl+P",
     [](const QString& keys) {
       User user;
       QWidget* panel = user.page->findChild<QDockWidget*>("Phases")->widget();
       EXPECT_TRUE(is_seen(panel));
       user.press(keys);
       EXPECT_FALSE(is_seen(panel));
       user.press(keys);
       EXPECT_TRUE(is_seen(panel));
       const auto bars =
           user.page->findChild<PanelDocks*>()->findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly);
       EXPECT_TRUE(std::ranges::any_of(bars, &QTabBar::isVisible)) << "the tabs are there again";
     }},
    {"Ctrl+Alt++ Ctrl+Alt+=",
     [](const QString& keys) {
       remember_scale(1);
       User user;
       user.press(keys);
       EXPECT_EQ(remembered_scale(), 1.25);
     }},
    {"Ctrl+Alt+-",
     [](const QString& keys) {
       remember_scale(1.5);
       User user;
       user.press(keys);
       EXPECT_EQ(remembered_scale(), 1.25);
       remember_scale(1);
     }},
    {"Ctrl+Alt+L", [](const QString& keys) { EXPECT_FALSE(is_dark(keys, "Ctrl+Alt+D")); }},
    {"Ctrl+Alt+D",
     [](const QString& keys) {
       EXPECT_TRUE(is_dark(keys, "Ctrl+Alt+L"));
       apply_theme("light");
     }},
    {"Ctrl+Alt+Y",
     [](const QString& keys) {
       EXPECT_FALSE(is_dark(keys, "Ctrl+Alt+D")) << "that of the offscreen desktop is light";
       apply_theme("light");
     }},
};

}  // namespace check_moves

const ActionChecks& checks_of_moves() { return check_moves::all; }

}  // namespace paceline::viewer
