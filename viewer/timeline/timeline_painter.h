// SPDX-License-Identifier: Apache-2.0
// Draws the ruler, the headers and the visible rows of a run on any paint device; knows nothing about input.
#pragma once

#include <QFont>
#include <QPainter>
#include <QSize>
#include <optional>
#include <vector>

#include "viewer/session/crew.h"
#include "viewer/session/view_state.h"
#include "viewer/timeline/row_layout.h"

namespace paceline::viewer {

// The labels of the ruler, and where their ticks are. A label without room is empty.
struct RulerTick {
  int x = 0;
  QString label;
  QRect box;  // of the label
};
std::vector<RulerTick> ruler_ticks(const TimeAxis& axis, const QFont& font, int names_width, int width);

class TimelinePainter {
 public:
  TimelinePainter(const Document& document, const Theme& theme, const QFont& font)
      : theme_(theme),
        font_(font),
        labels_(with_size(font, 11)),
        colours_(document.run().trace, theme),
        prefixes_(document.run().trace) {}

  // Fills an area of this size at the origin, or that part of it. `scroll_y` is how far the rows below the pinned ones
  // are scrolled up. The state's axis is narrower than the area by the column of names. Slices of the name `marked` are
  // underlined.
  DrawCounts paint(QPainter& painter, const QSize& size, const ViewState& state, const RowLayout& rows, int scroll_y,
                   std::optional<analysis::NameId> marked) {
    return paint(painter, size, state, rows, scroll_y, marked, QRect(QPoint(0, 0), size));
  }
  DrawCounts paint(QPainter& painter, const QSize& size, const ViewState& state, const RowLayout& rows, int scroll_y,
                   std::optional<analysis::NameId> marked, const QRect& part);

  const Theme& theme() const { return theme_; }

 private:
  void paint_ruler(RowCanvas& canvas, const QSize& size);
  // The part of the rows in this area that `part` has; rows are `shift` below their place in the layout.
  void paint_rows(RowCanvas& canvas, const ViewState& state, const RowLayout& rows, const QRect& area, int shift,
                  const QRect& part);
  // `top` is where the area begins in the layout.
  void paint_headers(RowCanvas& canvas, const ViewState& state, const RowLayout& rows, int top);

  Theme theme_;
  QFont font_;
  LabelTexts labels_;
  SliceColours colours_;
  CommonPrefixes prefixes_;
  Crew crew_;
};

}  // namespace paceline::viewer
