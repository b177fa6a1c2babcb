// The panels around the timeline. A panel is a widget that shows a document and observes a view state:
//
//   class CountPanel : public QLabel {
//    public:
//     CountPanel(Document& document, ViewState& state);
//   };
//
// It gets onto the page by one line of the table in panels.cpp.
#pragma once

#include <span>

#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

class QWidget;

namespace paceline::viewer {

struct PanelKind {
  // In the title bar, above the timeline, below it, or side by side at the bottom of the page.
  enum class Place { title, above, below, bottom };

  Place place;
  int width;  // at the bottom: its share of the page's width, compared with the others
  QWidget* (*make)(Document& document, ViewState& state);
};

// In the order in which they are placed.
std::span<const PanelKind> panel_kinds();

}  // namespace paceline::viewer
