// The whole run in miniature above the timeline, with the part in view framed: where am I, and what else is there.
#pragma once

#include <QPixmap>
#include <QWidget>

#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {

class OverviewWidget : public QWidget {
  Q_OBJECT

 public:
  OverviewWidget(TimelineWidget* timeline, QWidget* parent = nullptr);

  QSize sizeHint() const override { return {400, height_}; }
  QSize minimumSizeHint() const override { return {100, height_}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  void paint_scene();
  TimeAxis axis() const;  // the whole run over this widget's width

  TimelineWidget* timeline_;
  int height_ = 0, strip_height_ = 0;
  QPixmap scene_;
  bool stale_ = true;
  int painted_width_ = 0;
  double grip_ = 0;  // from the press to the middle of the view, in columns
};

}  // namespace paceline::viewer
