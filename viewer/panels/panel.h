// SPDX-License-Identifier: Apache-2.0
// The panels around the timeline. A panel is a widget that shows a document and observes a view state:
//
//   class CountPanel : public QLabel {
//    public:
//     CountPanel(Document& document, ViewState& state);
//   };
//
// A panel that is about one part of the view state takes only that part, such as the Selection. It gets onto the page
// by one line of the table in panels.cpp. Panels at the bottom are docks: they share tabs, and can be moved, floated
// and closed.
#pragma once

#include <span>

#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

class QWidget;

namespace paceline::viewer {

struct PanelKind {
  // In the title bar, above the timeline, below it, in the tabs at the bottom of the page, or to the right of them.
  enum class Place { title, above, below, tab, right };

  Place place;
  const char* title;  // of a dock
  QWidget* (*make)(Document& document, ViewState& state);
};

// In the order in which they are placed.
std::span<const PanelKind> panel_kinds();

}  // namespace paceline::viewer
