// SPDX-License-Identifier: Apache-2.0
// panels/count_panel.h
// How many slices start in the selected range of time.
#pragma once

#include <QLabel>

#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class CountPanel : public QLabel {
 public:
  CountPanel(Document& document, ViewState& state) : document_(document), state_(state), task_(document.background()) {
    connect(&state.selection, &Selection::range_changed, this, &CountPanel::count);
    count();
  }

 private:
  void count() {
    const TimeRange range = state_.selection.range().value_or(state_.time.axis().whole());
    setText("computing…");
    // In a worker thread: reads the run, which never changes, and copies of everything else.
    const auto work = [run = document_.shared_run(), range](const Ticket& ticket) {
      std::size_t count = 0;
      for (const auto& rank : run->trace.ranks) {
        if (ticket.cancelled()) break;  // a newer range is selected, or the page is closed
        for (const auto& track : rank.tracks) {
          for (const auto start : track.slices.start_ns) {
            if (double(start) >= range.begin_ns && double(start) < range.end_ns) ++count;
          }
        }
      }
      return count;
    };
    // In the UI thread, unless the work was cancelled.
    task_.start(work, [this](std::size_t count) { setText(QString("%L1 slices").arg(count)); });
  }

  Document& document_;
  ViewState& state_;
  Task task_;
};

}  // namespace paceline::viewer
