// SPDX-License-Identifier: Apache-2.0
// A page that fills a tab of the window and has a view that the actions of the menus change.
#pragma once

#include <QWidget>

#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class TabPage : public QWidget {
  Q_OBJECT

 public:
  // The view that keys and menus act on.
  virtual ViewState& state() = 0;
  // For the window's title and the status bar.
  virtual QString title() const = 0;
  virtual QString status() const = 0;

 Q_SIGNALS:
  void status_changed();

 protected:
  // Shows how long the others waited for each rank as soon as the run is analysed.
  void show_waiting(Document& document, ViewState& state);
};

}  // namespace paceline::viewer
