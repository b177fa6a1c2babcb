// SPDX-License-Identifier: Apache-2.0
// Where times, slices and ranks are in the viewport of a timeline.
#pragma once

#include <QPoint>
#include <QRect>
#include <QSize>
#include <optional>

#include "viewer/session/view_state.h"
#include "viewer/timeline/row_layout.h"

namespace paceline::viewer {

struct Geometry {
  const Run& run;
  const ViewState& state;
  const RowLayout& rows;
  QSize size;        // of the viewport
  int scroll_y = 0;  // how far the rows are scrolled up

  // The column of a time, in the viewport; at most a few pixels beside the visible ones.
  int x_of(double time_ns) const;
  double time_at(int x) const { return state.time.axis().time_at(x - state.time.names_width()); }
  // The height of a row or rank of the layout, in the viewport, and back. Pinned ones are not scrolled.
  int pinned_height() const { return rows.pinned_height(size.height() - ruler_height); }
  int y_of(int y) const { return y + ruler_height - (y < pinned_height() ? 0 : scroll_y); }
  int row_y(int y) const { return y - ruler_height + (y - ruler_height < pinned_height() ? 0 : scroll_y); }
  int first_scrolled_y() const { return pinned_height() + scroll_y; }  // in the layout
  QRect rows_box() const;                                              // the part of the viewport that shows slices

  // The row below this point; nullptr in the ruler and between rows.
  const PlacedRow* row_at(const QPoint& position) const;
  RowPoint point_in(const PlacedRow& placed, const QPoint& position) const;
  // Nothing if no row shows the slice. What is scrolled behind pinned rows is cut off.
  std::optional<QRect> box_of(const SliceRef& slice) const;
  // The same; on a folded rank the part of its strip from from_ns to end_ns. Nothing if the rank is not shown.
  std::optional<QRect> box_on_rank(const SliceRef& slice, std::int64_t from_ns, std::int64_t end_ns) const;

 private:
  QRect box_between(double from_ns, double end_ns, int y, int height) const;
};

}  // namespace paceline::viewer
