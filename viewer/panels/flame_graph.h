// SPDX-License-Identifier: Apache-2.0
// Where the time of the selected range went, as a flame graph: the ranges, by what was inside what, or the functions in
// samples of stacks, by what called what. The samples of two ranks or two iterations can be set side by side.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>

#include "viewer/panels/flame_chart.h"
#include "viewer/panels/lazy_panel.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class FlameGraph : public LazyPanel {
  Q_OBJECT

 public:
  enum class Show { ranges, samples, ranks, iterations };  // the last two: differences between samples

  FlameGraph(Document& document, ViewState& state);

  FlameChart& chart() { return *chart_; }
  const std::vector<FlameNode>& nodes() const { return chart_->nodes(); }
  QString status() const { return status_->text(); }
  void show_what(Show what);

 protected:
  void refresh() override;

 private:
  Show shown() const { return static_cast<Show>(what_->currentIndex()); }
  // What a difference compares; nothing where none is shown.
  std::optional<FlameSides> sides() const;
  void set_limits();  // of the numbers that can be compared
  void choose(std::uint32_t node);
  void show_status();
  void compare(const StackPlace& place);  // with all others, its function highlighted; does nothing without samples

  ViewState& state_;
  QComboBox* what_;
  QSpinBox *one_, *other_;  // numbers of ranks or iterations; below the least one, `other_` stands for all others
  QLineEdit* find_;
  QLabel* status_;
  FlameChart* chart_;
  Part part_;  // what the chart shows
  bool computed_ = false;
};

}  // namespace paceline::viewer
