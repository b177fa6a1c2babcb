// The phases of the whole run in miniature above the timeline. A frame shows which part is in view; dragging it moves
// through the run.
#pragma once

#include <QPixmap>
#include <QWidget>

#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class Overview : public QWidget {
  Q_OBJECT

 public:
  Overview(Document& document, ViewState& state);

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

  const Run& run_;
  ViewState& state_;
  int height_ = 0, strip_height_ = 0;
  QPixmap scene_;
  bool stale_ = true;
  int painted_width_ = 0;
  double grip_ = 0;  // from the press to the middle of the view, in columns
};

}  // namespace paceline::viewer
