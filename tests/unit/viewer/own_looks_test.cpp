// SPDX-License-Identifier: Apache-2.0
// What the user may choose about the looks: colours of names and phases, and rows that are pinned.
#include <gtest/gtest.h>

#include <QColorDialog>
#include <QContextMenuEvent>
#include <QMenu>
#include <algorithm>
#include <vector>

#include "tests/unit/viewer/user.h"
#include "viewer/drawing/colour_vision.h"
#include "viewer/drawing/palette.h"
#include "viewer/session/view_file.h"
#include "viewer/timeline/colour_menu.h"

namespace paceline::viewer {
namespace {

using analysis::Phase;

class OwnLooks : public testing::Test {
 protected:
  ~OwnLooks() override { choose_colours({}); }

  static QAction* entry_of(const QMenu& menu, const QString& text) {
    for (QAction* entry : menu.actions()) {
      if (entry->text() == text) return entry;
    }
    return nullptr;
  }
  // The context menu at this point of the timeline.
  QMenu* menu_at(QPoint point) {
    QContextMenuEvent event(QContextMenuEvent::Mouse, point, user.timeline->viewport()->mapToGlobal(point));
    QCoreApplication::sendEvent(user.timeline->viewport(), &event);
    return qobject_cast<QMenu*>(QApplication::activePopupWidget());
  }
  QRgb pixel_at(QPoint point) { return user.timeline->viewport()->grab().toImage().pixel(point); }
  // A point of the slice without its label.
  QPoint corner_of(const SliceRef& slice) { return user.timeline->geometry().box_of(slice)->topLeft() + QPoint(2, 2); }

  User user;
};

TEST_F(OwnLooks, AColourOfANameIsDrawnOnAllRanksUntilItIsTakenBack) {
  constexpr QRgb chosen = 0xff123456;
  const SliceRef one = user.first_named("backward", 0), other = user.first_named("backward", 3);
  const QRgb before = pixel_at(corner_of(one));
  choose_colour("backward", chosen);
  EXPECT_EQ(pixel_at(corner_of(one)), chosen);
  EXPECT_EQ(pixel_at(corner_of(other)), chosen);
  choose_colour("backward", std::nullopt);
  EXPECT_EQ(pixel_at(corner_of(one)), before);
}

TEST_F(OwnLooks, AColourOfAPhaseIsDrawnInTheStripAndTheLegend) {
  constexpr QRgb chosen = 0xff654321;
  user.state().time.show_part({1.2e8, 1.3e8});
  const Theme before = Theme::of(user.window.palette());
  choose_colour(Phase::forward, chosen);
  EXPECT_EQ(phase_colour(Phase::forward, Theme::of(user.window.palette())), chosen);
  EXPECT_NE(phase_colour(Phase::forward, before), chosen) << "a worker thread keeps the colours that it has";
  const QImage window = user.window.grab().toImage();
  int drawn = 0;
  for (int y = 0; y < window.height(); ++y) {
    for (int x = 0; x < window.width(); ++x) drawn += window.pixel(x, y) == chosen;
  }
  EXPECT_GT(drawn, 12 * 12) << "more than the square of the legend";
}

TEST_F(OwnLooks, TheContextMenuOffersColoursForANameAndAPhase) {
  QMenu* menu = menu_at(user.middle_of(user.first_named("forward", 1)));
  ASSERT_NE(menu, nullptr);
  for (const QString& title : {QString("Colour of forward"), QString("Colour of the phase forward")}) {
    const QAction* entry = entry_of(*menu, title);
    ASSERT_NE(entry, nullptr) << title.toStdString();
    Q_EMIT entry->menu()->aboutToShow();
    EXPECT_GE(entry->menu()->actions().size(), 10) << "suggestions, another colour, its own colour";
  }
  QMenu* colours = entry_of(*menu, "Colour of forward")->menu();
  QAction* first = colours->actions().front();
  first->trigger();
  EXPECT_EQ(pixel_at(corner_of(user.first_named("forward", 2))), QColor(first->text()).rgb());
  entry_of(*colours, "Its own colour")->trigger();
  EXPECT_TRUE(chosen_colours()->names.empty());
  menu->close();
}

TEST_F(OwnLooks, AnyColourCanBeChosenInADialog) {
  QMenu menu;
  fill_colour_menu(menu, {.phase = {}, .name = "forward"}, user.page->run());
  user.answer<QColorDialog>([](QColorDialog& dialog) {
    dialog.setCurrentColor(QColor(1, 2, 3));
    dialog.accept();
  });
  entry_of(menu, "Another colour…")->trigger();
  ASSERT_TRUE(chosen_colours()->names.contains("forward"));
  EXPECT_EQ(chosen_colours()->names.at("forward"), qRgb(1, 2, 3));
}

TEST_F(OwnLooks, SuggestionsDifferFromThePhasesForTheColourBlind) {
  std::vector<QRgb> used;
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::communication, Phase::optimizer, Phase::startup}) {
    used.push_back(phase_colour(phase, Theme::light()));
  }
  const std::vector<QRgb> suggested = suggested_colours(used, 6);
  ASSERT_EQ(suggested.size(), 6u);
  for (std::size_t i = 0; i < suggested.size(); ++i) {
    for (const QRgb one : used) EXPECT_GE(distance_for_all(suggested[i], one), 0.07) << i;
    for (std::size_t j = 0; j < i; ++j) EXPECT_GE(distance_for_all(suggested[i], suggested[j]), 0.07) << i << ", " << j;
  }
}

TEST_F(OwnLooks, ARowIsPinnedAboveAllRanks) {
  const SliceRef slice = user.first_named("backward", 2);
  user.state().arrangement.set_all_collapsed(true);
  EXPECT_EQ(user.timeline->rows().row_of(slice), nullptr);
  user.state().arrangement.set_row_pinned(2, "main thread", true);
  const PlacedRow* placed = user.timeline->rows().row_of(slice);
  ASSERT_NE(placed, nullptr) << "it is seen although its rank is folded";
  EXPECT_TRUE(placed->pinned);
  EXPECT_EQ(placed->y, 0);
  user.state().arrangement.set_all_collapsed(false);
  EXPECT_EQ(
      std::ranges::count_if(user.timeline->rows().rows(), [&](const PlacedRow& row) { return row.row == placed->row; }),
      1)
      << "not with its rank as well";
  user.click(user.middle_of(slice));
  EXPECT_EQ(user.state().selection.slice(), slice);
  user.state().arrangement.set_row_pinned(2, "main thread", false);
  EXPECT_FALSE(user.timeline->rows().row_of(slice)->pinned);
}

TEST_F(OwnLooks, TheContextMenuPinsARow) {
  const SliceRef slice = user.first_named("backward", 1);
  QMenu* menu = menu_at(user.middle_of(slice));
  ASSERT_NE(menu, nullptr);
  QAction* pin = entry_of(*menu, "Pin main thread of rank 1");
  ASSERT_NE(pin, nullptr);
  pin->trigger();
  menu->close();
  EXPECT_TRUE(user.state().arrangement.row_pinned(1, "main thread"));
}

TEST_F(OwnLooks, AreSavedWithTheView) {
  choose_colour(Phase::communication, 0xff010203);
  choose_colour("a \"name\"", 0xff040506);
  user.state().arrangement.set_row_pinned(3, "loader", true);
  const QByteArray saved = view_to_json(user.state(), {});
  const ColourChoices before = *chosen_colours();
  choose_colours({});
  ViewState again(user.page->run());
  view_from_json(saved, "test", again);
  EXPECT_EQ(*chosen_colours(), before);
  EXPECT_EQ(again.arrangement.pinned_rows(), (std::vector<Arrangement::RowName>{{3, "loader"}}));
  view_from_json(R"({"schema": "paceline.view/1", "colours": {"phases": {"forward": "no colour", "nonsense": "#fff"}},
                     "pinned_rows": [{"rank": 99, "row": "x"}, 3]})",
                 "test", again);
  EXPECT_EQ(*chosen_colours(), before) << "what is no colour is ignored";
}

}  // namespace
}  // namespace paceline::viewer
