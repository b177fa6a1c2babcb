// The colours of the phases that occur in a run, in the order that every view keeps.
#pragma once

#include <QWidget>
#include <memory>
#include <vector>

#include "viewer/session/run.h"

namespace paceline::viewer {

class Legend : public QWidget {
  Q_OBJECT

 public:
  explicit Legend(const Run& run, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {100, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<analysis::Phase> phases_;
  bool any_lost_ = false;
};

// Those in which any rank spent time, in the order of phase_order.
std::vector<analysis::Phase> phases_present(const Run& run);
// And those whose colours slices of any row have (copies on a stream). Cost: linear in the slices of the run.
std::vector<analysis::Phase> phases_drawn(const Run& run);

}  // namespace paceline::viewer
