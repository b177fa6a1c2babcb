// Draws the ruler, the headers and the rows of a run on any paint device; knows nothing of input.
//
// Nothing is drawn twice for one pixel column: the level-of-detail index folds what is narrower, so that a frame costs
// columns times visible rows, whatever the number of slices.
#pragma once

#include <QFont>
#include <QImage>
#include <QPainter>
#include <QSize>
#include <optional>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/drawing/phase_strip.h"
#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"
#include "viewer/timeline/row_layout.h"

namespace paceline::viewer {

constexpr int header_width = 200, ruler_height = 30;  // left of the rows and above them, in pixels

class TimelinePainter {
 public:
  TimelinePainter(const Run& run, const Theme& theme, const QFont& font);

  // Fills an area of this size at the origin. `scroll_y`: how far the rows are scrolled up. The axis is
  // header_width narrower than the area. Slices of the name `marked` are underlined.
  DrawCounts paint(QPainter& painter, const QSize& size, const TimeAxis& axis, const RowLayout& rows, int scroll_y,
                   std::optional<analysis::NameId> marked);

  const Theme& theme() const { return theme_; }

 private:
  void paint_ruler(QPainter& painter, const QSize& size, const TimeAxis& axis, DrawCounts& counts);
  void paint_header(QPainter& painter, const RankRows& rank);
  DrawCounts paint_track(QPainter& painter, const TrackRows& rows, const TimeAxis& axis, int top, int bottom,
                         std::optional<analysis::NameId> marked);
  DrawCounts paint_counter(QPainter& painter, const TrackRows& rows, const TimeAxis& axis);
  void paint_marks(QPainter& painter, const TrackRows& rows, const TimeAxis& axis, DrawCounts& counts);
  QString label_of(const analysis::Track& track, std::uint32_t slice, int width);

  const Run& run_;
  Theme theme_;
  QFont font_, bold_, small_;
  SliceColours colours_;
  analysis::NameId iteration_;
  // Reused from row to row.
  std::vector<analysis::LevelOfDetail::Item> items_;
  QImage narrow_;  // one line of pixels
  QImage graph_;   // a counter's row
};

// What a slice is called on screen: its name, and an iteration's number.
QString slice_title(const Run& run, const analysis::Track& track, const analysis::Slices& slices, std::uint32_t slice);

}  // namespace paceline::viewer
