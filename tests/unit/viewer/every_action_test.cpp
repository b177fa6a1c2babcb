// SPDX-License-Identifier: Apache-2.0
// Every action of the table has a check, and the check passes.
#include <QMenu>
#include <QMenuBar>
#include <QPlainTextEdit>
#include <set>

#include "tests/unit/viewer/user.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/sql_console.h"
#include "viewer/session/actions.h"

namespace paceline::viewer {
namespace {

// Opens the panel that the menu names.
void check_panel(const Action& action) {
  User user;
  const QString title = QString(action.text).remove('&');
  Q_EMIT user.state().commands.panel_wanted(title == "Phases" ? "Ranks" : "Phases");
  auto* dock = user.page->findChild<QDockWidget*>(title);
  ASSERT_NE(dock, nullptr) << title.toStdString();
  EXPECT_FALSE(is_seen(dock->widget()));
  user.press(action.keys);
  EXPECT_TRUE(is_seen(dock->widget())) << title.toStdString();
}

bool opens_panel(const Action& action) { return action.menu == QString("&Panels"); }

// The name of a section of the sheet.
class EveryAction : public testing::TestWithParam<const char*> {};

TEST_P(EveryAction, DoesWhatTheTableDescribes) {
  int checked = 0;
  for (const Action& action : action_table()) {
    if (action.section != std::string(GetParam())) continue;
    SCOPED_TRACE(std::string(action.keys) + ": " + action.help);
    ++checked;
    if (opens_panel(action)) {
      check_panel(action);
      continue;
    }
    bool found = false;
    for (const ActionChecks* checks :
         {&checks_of_moves(), &checks_of_slices(), &checks_of_mouse(), &checks_of_files()}) {
      const auto check = checks->find(action.keys);
      if (check == checks->end()) continue;
      found = true;
      check->second(action.keys);
    }
    EXPECT_TRUE(found) << "has no check: add one to a file tests/unit/viewer/check_*.cpp";
  }
  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, EveryAction,
                         testing::Values("Move", "Select and measure", "Find and show", "Panels", "Runs"));

TEST(ActionChecks, AreOfActionsThatExistInTheSectionsThatAreTested) {
  std::set<std::string> keys;
  const std::set<std::string> sections{"Move", "Select and measure", "Find and show", "Panels", "Runs"};
  for (const Action& action : action_table()) {
    keys.insert(action.keys);
    EXPECT_TRUE(sections.contains(action.section)) << action.section;
  }
  for (const ActionChecks* checks : {&checks_of_moves(), &checks_of_slices(), &checks_of_mouse(), &checks_of_files()}) {
    for (const auto& [key, check] : *checks) EXPECT_TRUE(keys.contains(key)) << key << " is no key of the table";
  }
}

TEST(EveryPanel, HasAnActionThatOpensIt) {
  std::set<QString> opened;
  for (const Action& action : action_table()) {
    if (opens_panel(action)) opened.insert(QString(action.text).remove('&'));
  }
  std::set<QString> panels;
  for (const PanelKind& kind : panel_kinds()) {
    if (kind.place == PanelKind::Place::tab) panels.insert(kind.title);
  }
  EXPECT_EQ(opened, panels);
}

TEST(SqlConsole, HasTheKeyboardWhenItsKeyIsPressed) {
  User user;
  user.press("Alt+0");
  QTest::keyClicks(QApplication::focusWidget(), "f");  // on the timeline it would show the whole run
  EXPECT_TRUE(user.page->findChild<SqlConsole*>()->findChild<QPlainTextEdit*>()->toPlainText().contains('f'));
}

TEST(EveryMenu, HasTheActionsOfTheTable) {
  User user;
  std::size_t entries = 0;
  for (QAction* title : user.window.menuBar()->actions()) {
    for (QAction* entry : title->menu()->actions()) entries += !entry->isSeparator() && entry->menu() == nullptr;
  }
  std::size_t expected = 0;
  for (const Action& action : action_table()) expected += *action.menu != '\0';
  EXPECT_EQ(entries, expected);
}

}  // namespace
}  // namespace paceline::viewer
