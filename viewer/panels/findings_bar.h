// SPDX-License-Identifier: Apache-2.0
// What the report found, in one line above the timeline: its verdict, its findings by their cost, and the change to
// make first. Where not all have room, those that lead to a place are shown, and a menu lists all. A click on a finding
// goes to its place, pins its rank and unfolds it, and shows what the stacks there have more of than others.
#pragma once

#include <QHBoxLayout>
#include <QToolButton>
#include <QWidget>
#include <functional>
#include <set>
#include <vector>

#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class FindingsBar : public QWidget {
  Q_OBJECT

 public:
  FindingsBar(Document& document, ViewState& state);

  QSize sizeHint() const override { return {600, 28}; }
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  // One entry of the bar, and what a click on it does.
  QToolButton* add(const QString& text, const QString& details, const QIcon& icon, std::function<void()> clicked);
  void fill(const QString& verdict, std::vector<ShownFinding> findings);
  void show_report();                           // with the critical path and the change to make first, which come later
  void cut_texts(std::size_t count, int most);  // to this number of pixels
  void fit();                                   // hides the findings that have no room; the last button lists all
  void go_to(const ShownFinding& finding);

  Document& document_;
  ViewState& state_;
  QHBoxLayout* layout_;
  std::vector<QToolButton*> findings_;  // in the order of the report
  std::set<QToolButton*> leading_;      // those of them that lead to a place
  QToolButton* verdict_ = nullptr;      // one of them
  QToolButton* all_;
  QString status_;
};

}  // namespace paceline::viewer
