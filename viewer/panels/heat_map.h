// SPDX-License-Identifier: Apache-2.0
// Which rank is late in which iteration: a row for each rank, a column for each iteration. Without collectives: whose
// iterations take longer than the median. A click goes to the iteration of that rank.
#pragma once

#include <QImage>
#include <optional>
#include <utility>
#include <vector>

#include "viewer/panels/lazy_panel.h"

namespace paceline::viewer {

// One value for each rank and iteration, in ns; above 0 where the rank is late or slow.
struct HeatValues {
  bool lateness = false;
  std::size_t ranks = 0;
  std::vector<std::int64_t> numbers;  // of the iterations
  std::vector<double> ns;             // by rank, then iteration
  double full_ns = 0;                 // the size from which on a cell has its full colour: one in a hundred is above it

  double at(std::size_t rank, std::size_t column) const { return ns[rank * numbers.size() + column]; }
};
// Cost: linear in ranks × iterations.
HeatValues heat_values(const analysis::RunAnalysis& figures);

class HeatMap : public LazyPanel {
  Q_OBJECT

 public:
  HeatMap(Document& document, Selection& selection);

  const HeatValues& values() const { return values_; }
  // Of a rank and a column.
  QRect cell(std::size_t rank, std::size_t column) const;

 protected:
  void refresh() override;
  bool event(QEvent* event) override;
  QString tip_at(const QPoint& position) const override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  using Cell = std::pair<std::size_t, std::size_t>;  // rank and column

  bool empty() const { return values_.ns.empty(); }
  QRect area() const;  // of the cells
  std::optional<Cell> at(const QPoint& position) const;
  QString text_of(const Cell& cell) const;
  void set_cursor(const Cell& cell);
  void go_to(const Cell& cell);

  HeatValues values_;
  QImage image_;  // a pixel for each cell, or for some together
  bool dark_ = false;
  QString status_ = "computing…";
  std::optional<Cell> cursor_;  // of the keyboard
};

}  // namespace paceline::viewer
