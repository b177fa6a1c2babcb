// SPDX-License-Identifier: Apache-2.0
// The application's window: a tab for each run, menus, the status bar.
#pragma once

#include <QLabel>
#include <QMainWindow>
#include <QMenu>
#include <QPointer>
#include <QTabWidget>
#include <functional>
#include <memory>

#include "viewer/comparison/comparison_page.h"
#include "viewer/session/actions.h"
#include "viewer/session/run_source.h"
#include "viewer/window/run_page.h"

namespace paceline::viewer {

class Window : public QMainWindow {
  Q_OBJECT

 public:
  Window();

  // The size for a window that is to be `wanted`, but not larger than the room on the screen. On a screen with a scale
  // of 2, both count its large pixels.
  static QSize fitting(QSize wanted, QSize screen);

  // Loads beside the UI thread. A new tab shows the progress, then the run or the reason why it cannot be opened. Then
  // `opened` is called with the run's page; the message of its exception is shown in the status bar.
  void open(const QString& path, std::function<void(RunPage&)> opened = {}, const analysis::MergeChoices& choices = {});
  // Opens the runs that were open when the window was closed last, as they were left.
  void reopen();
  void open_source(const RunSource& source, std::function<void(RunPage&)> opened = {});
  // Opens one path. Lists several paths in the dialog of merge().
  void open_all(const QStringList& paths);
  // Lists these files and directories in a dialog, and opens them as one run or as the user chooses there.
  void merge(const QStringList& paths, const analysis::MergeChoices& choices = {});
  // Loads the run again and again while its files grow; the view stays, or stays at the end of the run.
  void follow(const QString& path, int interval_ms = 2000);
  // Opened runs, their views and the theme are remembered for the next start. Off at first.
  void set_remembering(bool on) { remembering_ = on; }
  // Shows a run that is in memory, in a new tab or in place of a page.
  RunPage* show_run(std::shared_ptr<const Run> run, QWidget* instead_of = nullptr);
  // The page of the tab in front; nullptr while it is loading, or if it has another kind of page.
  RunPage* current_page() const;
  TabPage* current_tab() const;

  // Loads two runs beside the UI thread, and then shows them on one page. A run that is open already is not loaded
  // again. Then `opened` is called with the page; the message of its exception is shown in the status bar.
  void compare(const QString& a, const QString& b, std::function<void(ComparisonPage&)> opened = {});
  // Compares runs that are in memory, in a new tab or in place of a page.
  ComparisonPage* show_comparison(std::shared_ptr<const Run> a, std::shared_ptr<const Run> b,
                                  QWidget* instead_of = nullptr);
  // A message that stays in the status bar until the view changes.
  void show_message(const QString& message);

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;

 private:
  void make_menus();
  void fill_recent();  // the menu of runs that were opened before
  void act(const Action& action);
  void act_on_files(WindowAction action);
  void act_on_page(WindowAction action, TabPage& page);
  void act_on_run(WindowAction action, RunPage& page);
  void choose_runs_to_compare();
  QStringList open_paths() const;  // of the runs in tabs, that of the tab in front first
  void set_theme(const QString& theme);
  void change_scale(double by);
  void remember_and_restore(const RunSource& source, RunPage& page);  // the run, and its view
  void make_empty_page();
  void close_tab(int index);
  void watch(RunPage* page);
  void watch_status(TabPage* page);
  void put(QWidget* page, const QString& title);  // in a new tab, or where no run is open
  void replace(QWidget* page, QWidget* by, const QString& title);
  void show_failure(QWidget* instead_of, const QString& title, const QString& why, const QString& tab);
  void page_changed();

  QTabWidget* tabs_;
  QLabel* status_;
  QMenu* recent_ = nullptr;
  bool remembering_ = false, linked_ = false;
  QPointer<RunPage> last_;    // that was in front last
  QWidget* empty_ = nullptr;  // the page that is shown while no run is open
};

}  // namespace paceline::viewer
