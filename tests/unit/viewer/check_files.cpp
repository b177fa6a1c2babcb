// SPDX-License-Identifier: Apache-2.0
// Checks of the actions that open, save and export, and of those that open dialogs.
#include <QClipboard>
#include <QDir>
#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QListWidget>
#include <QTabWidget>
#include <QTemporaryDir>
#include <algorithm>

#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/viewer/user.h"
#include "viewer/comparison/choose_runs.h"
#include "viewer/merging/merge_dialog.h"
#include "viewer/panels/table_panel.h"
#include "viewer/session/recent_runs.h"
#include "viewer/session/view_file.h"
#include "viewer/window/command_palette.h"
#include "viewer/window/shortcuts.h"

namespace paceline::viewer {
namespace check_files {

class Folder : public QTemporaryDir {
 public:
  Folder() { analysis::write_run(simulate({.ranks = 2, .iterations = 2, .layers = false}), run().toStdString()); }
  QString run() const { return path() + "/run"; }
};

bool opens(User& user, const QString& path) {
  return QTest::qWaitFor(
      [&] {
        const RunPage* page = user.window.current_page();
        return page != nullptr && page->run().path == path;
      },
      20'000);
}

QByteArray text_of(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

const ActionChecks all{
    {"Ctrl+O",
     [](const QString& keys) {
       const Folder folder;
       User user;
       user.choose(folder.run());
       user.press(keys);
       EXPECT_TRUE(opens(user, folder.run()));
     }},
    {"Ctrl+Shift+O",
     [](const QString& keys) {
       const Folder folder;
       User user;
       const QString file = folder.run() + "/" + QDir(folder.run()).entryList({"*.pace"}).front();
       user.choose(file);
       user.press(keys);
       EXPECT_TRUE(opens(user, file));
     }},
    {"Ctrl+Alt+O",
     [](const QString& keys) {
       const Folder folder;
       User user;
       user.choose(folder.run() + "/" + QDir(folder.run()).entryList({"*.pace"}).front());
       user.press(keys);
       auto* dialog = user.window.findChild<MergeDialog*>();
       ASSERT_NE(dialog, nullptr);
       EXPECT_TRUE(dialog->isVisible());
       dialog->reject();
     }},
    {"Ctrl+Alt+C",
     [](const QString& keys) {
       User user;
       bool seen = false;
       user.answer<ChooseRuns>([&](ChooseRuns& dialog) {
         seen = true;
         dialog.reject();
       });
       user.press(keys);
       EXPECT_TRUE(seen);
     }},
    {"Ctrl+Alt+K",
     [](const QString& keys) {
       User user;
       auto* tabs = user.window.findChild<QTabWidget*>();
       ViewState& other = user.window.show_run(index_run("other", simulate({.ranks = 3, .iterations = 6})))->state();
       const auto fourth = [](ViewState& state) {
         const auto& all = state.run.iterations;
         const auto one = std::ranges::find(all, 4, &RunIteration::number);
         return TimeRange{double(one->start_ns), double(one->end_ns)};
       };
       other.selection.select_range(fourth(other));
       tabs->setCurrentIndex(0);
       EXPECT_FALSE(user.state().selection.range()) << "not linked yet";
       tabs->setCurrentIndex(1);
       user.press(keys);
       tabs->setCurrentIndex(0);
       EXPECT_EQ(user.state().selection.range(), fourth(user.state()));
       user.press(keys);
       user.state().selection.select_range(std::nullopt);
       tabs->setCurrentIndex(1);
       EXPECT_TRUE(other.selection.range()) << "no longer linked";
     }},
    {"Ctrl+R",
     [](const QString& keys) {
       const Folder folder;
       remember_run({.paths = {folder.run()}});
       User user;
       user.press(keys);
       EXPECT_TRUE(opens(user, folder.run()));
     }},
    {"Ctrl+S",
     [](const QString& keys) {
       const QTemporaryDir folder;
       const QString path = folder.path() + "/run";
       User user(index_run(path, simulate({.ranks = 2, .iterations = 2, .layers = false})));
       user.press(keys);
       EXPECT_TRUE(QFile::exists(view_file_of(path)));
     }},
    {"Ctrl+Shift+S",
     [](const QString& keys) {
       const QTemporaryDir folder;
       const QString pixels = folder.path() + "/window.png", text = folder.path() + "/window.svg";
       User user;
       user.choose(pixels);
       user.press(keys);
       EXPECT_EQ(QImage(pixels).size(), user.window.size());
       User other;
       other.choose(text);
       other.press(keys);
       EXPECT_TRUE(text_of(text).contains(">Rank 0<"));
     }},
    {"Ctrl+Shift+T",
     [](const QString& keys) {
       const QTemporaryDir folder;
       User user;
       user.open<TablePanel>("Ranks");
       user.choose(folder.path() + "/table.csv");
       user.press(keys);
       EXPECT_TRUE(text_of(folder.path() + "/table.csv").startsWith("Rank,Host,"));
     }},
    {"Ctrl+Shift+X",
     [](const QString& keys) {
       const QTemporaryDir folder;
       const QString file = folder.path() + "/part";
       User user;
       user.state().selection.select_range(TimeRange{2e8, 3e8});
       user.choose(file);
       user.press(keys);
       EXPECT_TRUE(QTest::qWaitFor([&] { return QFile(file).size() > 100; }, 20'000));
     }},
    {"Ctrl+Shift+C",
     [](const QString& keys) {
       User user;
       QApplication::clipboard()->clear();
       user.press(keys);
       EXPECT_TRUE(QApplication::clipboard()->text().startsWith("paceline view four --from "));
     }},
    {"Ctrl+W",
     [](const QString& keys) {
       User user;
       QTest::keyClick(user.timeline, QKeySequence(keys)[0].key(), QKeySequence(keys)[0].keyboardModifiers());
       EXPECT_EQ(user.window.current_page(), nullptr);
     }},
    {"Ctrl+Q",
     [](const QString& keys) {
       User user;
       user.press(keys);
       EXPECT_FALSE(user.window.isVisible());
     }},
    {"Ctrl+K Ctrl+Shift+P",
     [](const QString& keys) {
       User user;
       user.answer<CommandPalette>([](CommandPalette& palette) {
         QTest::keyClicks(palette.findChild<QLineEdit*>(), "panels heat");
         QTest::keyClick(palette.findChild<QLineEdit*>(), Qt::Key_Return);
       });
       user.press(keys);
       EXPECT_TRUE(is_seen(user.page->findChild<QDockWidget*>("Heat map")->widget()));
     }},
    {"?",
     [](const QString& keys) {
       User user;
       QString text;
       user.answer<ShortcutSheet>([&](ShortcutSheet& sheet) {
         for (const QLabel* column : sheet.findChildren<QLabel*>()) text += column->text();
         QTest::keyClick(&sheet, Qt::Key_Escape);
       });
       user.press(keys);
       EXPECT_TRUE(text.contains("find an action by its name"));
     }},
};

}  // namespace check_files

const ActionChecks& checks_of_files() { return check_files::all; }

}  // namespace paceline::viewer
