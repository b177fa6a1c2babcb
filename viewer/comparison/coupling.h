// SPDX-License-Identifier: Apache-2.0
// Two runs on one time scale: a column of the screen shows a time of run A and, shifted by a fixed offset, a time of
// run B. The offset is such that both runs begin an iteration of the same number in the same column, or, where none is
// chosen, that both runs begin there. Moves, zoom and selections of either view go over to the other one.
#pragma once

#include <QObject>
#include <optional>
#include <vector>

#include "viewer/session/view_state.h"

namespace paceline::viewer {

// An iteration that both runs have, by its number.
struct CommonIteration {
  std::int64_t number = 0;
  RunIteration a, b;
};
// In the order of A's times.
std::vector<CommonIteration> common_iterations(const Run& a, const Run& b);

// Shows and selects in the second run what the first view has, where both runs have it: the same time of the iteration
// in the middle of the view, the selected iteration or range on the ranks of the same numbers, and the nearest slice of
// the name of the selected one. Cost: linear in the slices of one track.
void follow_selection(const ViewState& from, ViewState& to);

class Coupling : public QObject {
  Q_OBJECT

 public:
  // Aligns the runs at the first iteration that both have, and shows all iterations.
  Coupling(ViewState& a, ViewState& b);

  const std::vector<CommonIteration>& iterations() const { return iterations_; }

  // Run B's time minus run A's time in the same column, in ns.
  double offset_ns() const { return offset_ns_; }
  // The number of the iteration that begins in the same column; nothing where the runs' begins are aligned.
  std::optional<std::int64_t> aligned_at() const { return aligned_at_; }
  // The number of the iteration that is selected; nothing where another range or none is.
  std::optional<std::int64_t> selected_iteration() const;
  // Aligns the runs at this iteration, or at their begins. A's view stays, and B's follows. Returns false, and changes
  // nothing, if a run lacks the iteration.
  bool align_at(std::optional<std::int64_t> number);
  // Aligns at the iteration, selects it in both runs and brings it into view. Returns false if a run lacks it.
  bool select_iteration(std::int64_t number);

 Q_SIGNALS:
  void aligned();  // the offset may be another one

 private:
  const CommonIteration* find(std::int64_t number) const;
  void align(ViewState& leading, std::optional<std::int64_t> number);
  void follow_view(ViewState& from, ViewState& to, double shift_ns);
  void follow_range(ViewState& from, ViewState& to);
  void connect_views(ViewState& from, ViewState& to);

  ViewState &a_, &b_;
  std::vector<CommonIteration> iterations_;
  TimeRange whole_a_, whole_b_;  // of the runs alone
  double offset_ns_ = 0;
  std::optional<std::int64_t> aligned_at_;
  bool following_ = false;  // a change that this object made needs no answer
};

}  // namespace paceline::viewer
