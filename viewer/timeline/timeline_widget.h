// SPDX-License-Identifier: Apache-2.0
// The timeline of a run: shows a view state and turns the mouse, the wheel and the keys into changes of it. The painter
// draws.
#pragma once

#include <QAbstractScrollArea>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "viewer/timeline/geometry.h"
#include "viewer/timeline/links.h"
#include "viewer/timeline/path_layer.h"
#include "viewer/timeline/rows_picture.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {

class TimelineWidget : public QAbstractScrollArea {
  Q_OBJECT

 public:
  TimelineWidget(Document& document, ViewState& state, QWidget* parent = nullptr);

  const RowLayout& rows() const { return rows_; }
  int scroll_y() const;

  // The slice at this point of the viewport. Marks and slices narrower than the pointer's tip are found within 3
  // pixels.
  std::optional<SliceRef> slice_at(const QPoint& position) const;
  // HTML for what is at this point of the viewport; empty if there is nothing.
  QString tooltip_at(const QPoint& position) const;

  // What belongs to the slice below the pointer, or else to the selected one: the calls of its collective on all ranks,
  // and the slices that it started or that started it.
  std::span<const CollectiveIndex::Call> lit_collective() const;
  const std::vector<SliceRef>& lit_partners() const { return partners_; }
  const PathLayer& path() const { return path_; }
  Geometry geometry() const;
  void reveal(const SliceRef& slice) { state_.selection.reveal(slice); }

  // What the last painting of rows took; after scrolling only some of them are painted.
  DrawCounts draw_counts() const { return picture_.counts(); }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  enum class Drag { none, undecided, pan, range, box, names, rank };

  void redraw();     // the rows are drawn again at the next paint
  void show_rows();  // the same rows, which may be elsewhere or have got their index
  void place_rows();
  void set_pointer(std::optional<QPoint> pointer);
  void drag_to(const QPoint& position, Qt::KeyboardModifiers modifiers);
  void end_drag(Drag drag, const QPoint& position, Qt::KeyboardModifiers modifiers);
  void scroll_to(const SliceRef& slice);
  void step(Commands::Step step);
  void step_to_row(const SliceRef& from, int rows);
  void step_to_rank(const SliceRef& from, int ranks);
  bool reveal_near(const SliceRef& from, const PlacedRow& row);
  void go_to_partner();
  void show_colours(bool of_phase);
  void light_up();  // finds what belongs to the slice below the pointer or to the selected one
  DrawCounts paint_rows(QPainter& painter, const QRect& part);
  void paint_overlay(QPainter& painter);
  int names_width() const { return state_.time.names_width(); }
  double column_at(const QPoint& position) const { return position.x() - names_width(); }
  bool on_edge_of_names(const QPoint& position) const { return std::abs(position.x() - names_width()) <= 3; }
  // The end of the selected range that stays where it is while the edge at this point is dragged.
  std::optional<double> anchor_of_edge(const QPoint& position) const;
  // The time at this point, within the run; that of the nearest edge of a slice there if it is close, unless Ctrl is
  // held.
  double snapped_time(const QPoint& position, Qt::KeyboardModifiers modifiers) const;
  std::set<std::size_t> ranks_between(int y, int other_y) const;
  std::optional<PlacedRank> rank_at(int y) const;
  void announce_selection();

  Document& document_;
  ViewState& state_;
  RowLayout rows_;
  mutable Links links_;  // makes its indexes when they are first needed
  PathLayer path_;
  std::unique_ptr<TimelinePainter> painter_;
  RowsPicture picture_;
  bool misplaced_ = false;

  std::optional<QPoint> pointer_;
  std::optional<SliceRef> lit_;  // below the pointer, or else the selected one
  std::vector<SliceRef> partners_;
  Drag drag_ = Drag::none;
  QPoint pressed_, dragged_;
  double range_anchor_ns_ = 0;
};

}  // namespace paceline::viewer
