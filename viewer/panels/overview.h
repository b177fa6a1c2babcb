// SPDX-License-Identifier: Apache-2.0
// The phases of the whole run in miniature above the timeline: a strip for each rank, or for a few ranks together where
// there are many. A frame shows which part is in view; dragging it moves through the run, and dragging one of its
// handles changes where the view begins or ends. The strip below shows the arrival skew: how long the first rank of a
// collective waited for the last one.
#pragma once

#include <QImage>
#include <QWidget>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/session/document.h"
#include "viewer/session/visible_time.h"

namespace paceline::viewer {

class Overview : public QWidget {
  Q_OBJECT

 public:
  Overview(Document& document, VisibleTime& time);

  QSize sizeHint() const override { return {400, height_of_strips() + skew_height() + 2 * margin}; }
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }
  // How many strips there are. Together they show all ranks.
  int strips() const { return strips_; }
  const QImage& image() const { return image_; }
  // The longest wait that ends in each column, in ns; empty until the run is analysed.
  const std::vector<double>& skew_ns() const { return skew_ns_; }
  // Where the handles of the frame are.
  int left_handle() const { return column_of(time_.axis().visible().begin_ns); }
  int right_handle() const { return column_of(time_.axis().visible().end_ns); }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  enum class Drag { none, frame, left, right };
  static constexpr int margin = 6;
  int height_of_strips() const { return strips_ * strip_height_; }
  int skew_height() const { return strips_ > 1 ? 12 : 0; }
  int column_of(double time_ns) const;  // in the coordinates of the widget
  Drag drag_at(double x) const;
  void paint_skew(QPainter& painter, const Theme& theme);
  void start();           // draws the strips beside the UI thread
  TimeAxis axis() const;  // the whole run over this widget's width

  Document& document_;
  VisibleTime& time_;
  Task task_;
  int strips_ = 1, strip_height_ = 0;
  QImage image_;  // of the strips; empty until the first one is drawn
  int drawn_width_ = 0;
  std::vector<double> skew_ns_;
  Drag drag_ = Drag::none;
  double grip_ = 0;  // from the press to the middle of the view, in columns
};

}  // namespace paceline::viewer
