// The timeline of a run: shows a view state and turns the mouse, the wheel and the keys into changes of it. The painter
// draws.
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>
#include <cstdlib>
#include <memory>
#include <optional>

#include "viewer/timeline/row_layout.h"
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

  // What the last full drawing took.
  DrawCounts draw_counts() const { return counts_; }

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
  bool viewportEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  enum class Drag { none, undecided, pan, range, names };

  void redraw();  // the rows are drawn again at the next paint
  void place_rows();
  void set_pointer(std::optional<QPoint> pointer);
  void scroll_to(const SliceRef& slice);
  void step(ViewState::Step step);
  void step_to_row(const SliceRef& from, int rows);
  void step_to_rank(const SliceRef& from, int ranks);
  bool reveal_near(const SliceRef& from, const PlacedRow& row);
  void paint_overlay(QPainter& painter);
  void paint_range(QPainter& painter, const TimeRange& range);
  int names_width() const { return state_.names_width(); }
  double column_at(const QPoint& position) const { return position.x() - names_width(); }
  bool on_edge_of_names(const QPoint& position) const { return std::abs(position.x() - names_width()) <= 3; }
  // The row below this point of the viewport, and the point in it.
  const PlacedRow* row_at(const QPoint& position) const;
  RowPoint point_in(const PlacedRow& placed, const QPoint& position) const;
  std::optional<QRect> box_of(const SliceRef& slice) const;  // in the viewport
  void announce_selection();

  Document& document_;
  ViewState& state_;
  RowLayout rows_;
  std::unique_ptr<TimelinePainter> painter_;
  QPixmap scene_;
  bool stale_ = true, misplaced_ = false;
  DrawCounts counts_;

  std::optional<QPoint> pointer_;
  Drag drag_ = Drag::none;
  QPoint pressed_, dragged_;
  double range_anchor_ns_ = 0;
};

}  // namespace paceline::viewer
