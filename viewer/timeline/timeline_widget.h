// The timeline of a run: zoom, pan, select, measure. All drawing is the painter's; this is the state and the input.
#pragma once

#include <QAbstractScrollArea>
#include <QPixmap>
#include <memory>
#include <optional>
#include <vector>

#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"
#include "viewer/timeline/row_layout.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {

class TimelineWidget : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit TimelineWidget(std::shared_ptr<const Run> run, QWidget* parent = nullptr);

  const Run& run() const { return *run_; }
  const TimeAxis& axis() const { return axis_; }
  const RowLayout& rows() const { return rows_; }
  std::optional<SliceRef> selected() const { return selected_; }
  std::optional<TimeRange> selected_range() const { return selected_range_; }
  int scroll_y() const;

  // Jumps: the range before is kept for show_previous().
  void show_all() { jump_to(axis_.whole()); }
  void jump_to(TimeRange range);
  void show_previous();
  // Iterations are those of the first rank that has any; `steps` from the one in the middle of the view.
  void jump_to_iteration(int steps);
  // Zooms to the iterations numbered first … last; false where there are none.
  bool show_iterations(std::int64_t first, std::int64_t last);

  // Moves: small steps that leave no trace behind.
  void zoom(double x, double factor);  // x in columns of the axis
  void zoom_at_pointer(double factor);
  void pan(double pixels);
  void show_part(TimeRange range);

  void select(std::optional<SliceRef> slice);
  // Selects, and brings it into view if it is not.
  void reveal(const SliceRef& slice);
  // Zooms so that the slice takes two thirds of the width.
  void zoom_to(const SliceRef& slice);
  void zoom_to_selection();
  void select_range(std::optional<TimeRange> range);
  void set_all_collapsed(bool collapsed);
  // Shows all counters of all ranks, or only each rank's first.
  void set_counters_unfolded(bool unfolded);

  // What is at this point of the viewport; marks and slices narrower than the pointer's tip are found within 3 pixels.
  std::optional<SliceRef> slice_at(const QPoint& position) const;

  // What the counter's row at this point shows: "187 %", or "0 % to 187 %" where a pixel covers several samples. Empty
  // where there is none.
  QString value_at(const QPoint& position) const;

  // What the last full drawing took.
  DrawCounts draw_counts() const { return counts_; }

 Q_SIGNALS:
  void view_changed();
  void selection_changed();
  void range_changed();

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
  enum class Drag { none, undecided, pan, range };

  void redraw();  // the rows are drawn anew at the next paint
  void after_move();
  void update_scroll_bar();
  void paint_overlay(QPainter& painter);
  void paint_range(QPainter& painter, const TimeRange& range);
  std::optional<QRect> box_of(const SliceRef& slice) const;  // in the viewport
  double column_at(const QPoint& position) const { return position.x() - header_width; }
  void move_selection(int key);
  QString tooltip_at(const QPoint& position) const;
  void announce_selection();

  std::shared_ptr<const Run> run_;
  TimeAxis axis_;
  RowLayout rows_;
  std::unique_ptr<TimelinePainter> painter_;
  QPixmap scene_;
  bool stale_ = true;
  DrawCounts counts_;

  std::vector<TimeRange> history_;
  std::optional<SliceRef> selected_;
  std::optional<TimeRange> selected_range_;
  std::optional<QPoint> pointer_;
  Drag drag_ = Drag::none;
  QPoint pressed_, dragged_;
  double range_anchor_ns_ = 0;
};

}  // namespace paceline::viewer
