// SPDX-License-Identifier: Apache-2.0
// The iterations of the run above the timeline, with number and duration. Those above the 95th percentile are darker. A
// click selects the time of an iteration on all ranks; a double click zooms to it.
#pragma once

#include <QWidget>
#include <vector>

#include "viewer/drawing/labels.h"
#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class IterationRuler : public QWidget {
  Q_OBJECT

 public:
  IterationRuler(Document& document, ViewState& state);

  QSize sizeHint() const override { return {600, iterations_.empty() ? 0 : 18}; }
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  const RunIteration* at(double x) const;  // in the coordinates of the widget

  ViewState& state_;
  const std::vector<RunIteration>& iterations_;
  std::int64_t slow_ns_ = 0;  // their 95th percentile
  LabelTexts texts_;
};

}  // namespace paceline::viewer
