// SPDX-License-Identifier: Apache-2.0
// A strip of the states of threads that never run at the same time, below their slices or by itself where they have
// none. The ticks above it are samples of their stacks.
#pragma once

#include <vector>

#include "viewer/drawing/state_strip.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {

class StateRow : public Row {
 public:
  // Of a row without slices above it, `labelled` shows the name.
  StateRow(Document& document, std::size_t rank, std::vector<std::size_t> tracks, Hidden hidden, bool labelled);

  Height height() const override;
  bool is_states() const override { return true; }
  void set_filter(const KindSet& kinds) override { kinds_ = kinds; }
  bool shown() const override;
  QString name() const override { return shown_name(track(tracks_.front()).label); }
  void look_up(const RowCanvas& canvas) override;
  void paint(RowCanvas& canvas) override;
  void paint_header(RowCanvas& canvas, const Arrangement& arrangement) override;
  QString tooltip(const RowPoint& point) override;
  QString header_tooltip(const Arrangement& arrangement) const override;
  std::optional<analysis::TimeInterval> interval_around(double time_ns) const override;

 private:
  const analysis::Track& track(std::size_t t) const { return model().tracks[t]; }
  QImage drawn(const RowCanvas& canvas) const;
  // Of the thread that is known at this time.
  std::optional<StateStretch> stretch_at(double time_ns) const;
  QString sample_lines(const RowPoint& point) const;

  std::vector<std::size_t> tracks_;
  std::vector<StripStates> states_;
  bool labelled_, sampled_ = false;
  KindSet kinds_;
  QImage drawn_;  // between look_up() and paint()
};

// Appends the strip of these tracks if they have states or samples.
void add_state_row(Document& document, std::size_t rank, const std::vector<std::size_t>& tracks, Rows& rows);

}  // namespace paceline::viewer
