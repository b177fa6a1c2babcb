// SPDX-License-Identifier: Apache-2.0
// The timeline with docks below it: some share tabs, one stands to the right of them. Docks can be moved, floated and
// closed; a right click on a tab lists them.
#pragma once

#include <QByteArray>
#include <QDockWidget>
#include <QMainWindow>
#include <vector>

namespace paceline::viewer {

class PanelDocks : public QMainWindow {
  Q_OBJECT

 public:
  explicit PanelDocks(QWidget* central);

  void add_tab(const QString& title, QWidget* panel);
  void add_right(const QString& title, QWidget* panel);
  // Brings a dock to the front, opened if it was closed. Does nothing if no dock has this title.
  void bring(const QString& title);
  // Hides all docks, or shows those again that were open.
  void set_shown(bool shown);
  // Which docks are open, where they are, and which tab is in front: for restore(), also of another run.
  QByteArray layout() const { return hidden_layout_.isEmpty() ? saveState() : hidden_layout_; }
  void restore(const QByteArray& layout);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QDockWidget* add(const QString& title, QWidget* panel);

  std::vector<QDockWidget*> tabs_;
  QDockWidget* right_ = nullptr;
  QByteArray hidden_layout_;  // the layout while the docks are hidden
  bool sized_ = false;
};

}  // namespace paceline::viewer
