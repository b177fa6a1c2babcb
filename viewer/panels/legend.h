// SPDX-License-Identifier: Apache-2.0
// The colours of the phases that occur in a run, in the order that every view keeps.
#pragma once

#include <QWidget>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

// The phases in which any rank spent time, in the order of phase_order.
std::vector<analysis::Phase> phases_present(const Run& run);
// The same, and the phases whose colour appears on any other row, such as a copy on a stream. Cost: linear in the kinds
// of slices.
std::vector<analysis::Phase> phases_drawn(const Run& run);

class Legend : public QWidget {
  Q_OBJECT

 public:
  Legend(Document& document, ViewState& state);
  QSize sizeHint() const override { return {600, 28}; }
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Document& document_;
  const ViewState& state_;
  std::vector<analysis::Phase> phases_;
  bool unrecorded_ = false;  // lost or paused somewhere
  bool states_ = false;      // of threads were recorded
};

}  // namespace paceline::viewer
