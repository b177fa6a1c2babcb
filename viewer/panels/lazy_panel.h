// SPDX-License-Identifier: Apache-2.0
// A panel that computes nothing before it is first seen, and nothing while it is hidden behind another tab.
#pragma once

#include <QEvent>
#include <QWidget>

#include "viewer/drawing/labels.h"
#include "viewer/panels/sight.h"
#include "viewer/panels/slices_in.h"
#include "viewer/session/document.h"
#include "viewer/session/selection.h"

namespace paceline::viewer {

class LazyPanel : public QWidget {
 public:
  LazyPanel(Document& document, Selection& selection)
      : document_(document), selection_(selection), task_(document.background()) {}

 protected:
  // Begins to compute what the panel shows. Called when the panel is seen and out of date.
  virtual void refresh() = 0;
  // What is shown is out of date.
  void set_stale() {
    stale_ = true;
    refresh_if_seen();
  }
  // The tooltip of what is drawn there; empty where nothing is.
  virtual QString tip_at(const QPoint&) const { return {}; }
  bool event(QEvent* event) override {
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    show_tooltip(event, *this, [this](const QPoint& position) { return tip_at(position); });
    return true;
  }
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    sight_.shown();
  }

  // The selected range and its ranks; everything if nothing is selected.
  Part selected_part() const { return {selection_.range(), selection_.ranks()}; }

  Document& document_;
  Selection& selection_;
  Task task_;

 private:
  void refresh_if_seen() {
    if (!stale_ || !sight_.in_sight()) return;
    stale_ = false;
    refresh();
  }

  bool stale_ = true;
  Sight sight_{*this, [this] { refresh_if_seen(); }};
};

}  // namespace paceline::viewer
