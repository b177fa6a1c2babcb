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
  // Has two lines where one is too narrow.
  QSize sizeHint() const override { return {600, heightForWidth(width())}; }
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;
  void resizeEvent(QResizeEvent*) override { updateGeometry(); }  // another width may need another line

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  enum class Mark { phase, waiting, unrecorded, state };
  struct Entry {
    QString text;
    Mark mark = Mark::phase;
    int which = 0;        // the phase or the state
    QPoint at = {};       // of its box
    int text_offset = 0;  // from the box
  };
  // The entries in their places, and below the last line.
  struct Places {
    std::vector<Entry> entries;
    int end_x = 0, bottom = 0;  // where the last line ends
  };
  Places place(int width) const;

  const Document& document_;
  const ViewState& state_;
  std::vector<analysis::Phase> phases_;
  bool unrecorded_ = false;  // lost or paused somewhere
  bool states_ = false;      // of threads were recorded
};

}  // namespace paceline::viewer
