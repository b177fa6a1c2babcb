// SPDX-License-Identifier: Apache-2.0
// What is drawn over the rows and changes with the pointer: the selection, the selected range, bookmarks, and what
// belongs to the slice below the pointer.
#pragma once

#include <QFont>
#include <QPainter>
#include <QPalette>
#include <QRegion>
#include <optional>
#include <span>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/session/collective_index.h"
#include "viewer/timeline/geometry.h"

namespace paceline::viewer {

struct Overlay {
  QPainter& painter;
  const Geometry& geometry;
  const Theme& theme;
  const QPalette& palette;
  const QFont& font;
  QRegion tags = {};  // painted so far

  // A hair line, and its time beside the ruler.
  void paint_pointer(const QPoint& pointer);
  void paint_selection(const SliceRef& slice);
  // Everything outside the selected range is paler; its length is written in the ruler.
  void paint_range(const TimeRange& range);
  void paint_bookmarks();  // and the mark of a time
  // A frame around each call of a collective, and a line through the arrivals. Only the ranks on screen are drawn.
  void paint_collective(std::span<const CollectiveIndex::Call> calls);
  // An arrow from the earlier one to the later one, and a frame around the partner.
  void paint_link(const SliceRef& slice, const SliceRef& partner);
  // Where a rank that is dragged would be put.
  void paint_drop(const PlacedRank& target, bool below);

 private:
  std::optional<QRect> box_of(const SliceRef& slice) const;  // of the slice, or its part of a folded rank's strip
  // The calls on ranks in view and on pinned rows, and the nearest ones above and below the view, to which the line
  // through the arrivals leads. `calls` are sorted by rank. The rows of other ranks are not searched.
  std::vector<const CollectiveIndex::Call*> calls_near_view(std::span<const CollectiveIndex::Call> calls) const;
  void frame(const QRect& box);
  void paint_flag(double time_ns, const QString& text, const QColor& colour);
  // A text in the ruler. Labels of the ruler that it would hide a part of go: the rest of a number is another number.
  void paint_tag(const QRect& box, const QString& text, const QColor& background, const QColor& colour);
};

}  // namespace paceline::viewer
