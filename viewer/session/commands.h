// SPDX-License-Identifier: Apache-2.0
// What an action asks of the widget that can do it.
#pragma once

#include <QObject>
#include <QString>

namespace paceline::viewer {

struct StackPlace;

class Commands : public QObject {
  Q_OBJECT

 public:
  // From a slice to another one: on its level, to another level, to another row, to the same row of another rank, or to
  // the slice of the same name in its row.
  enum class Step { previous, next, out, in, row_above, row_below, rank_above, rank_below, previous_same, next_same };

 Q_SIGNALS:
  void filter_wanted();                          // the keyboard goes to the field of the filter
  void search_wanted(const QString& text = {});  // for this name, or for what the user will type
  void timeline_wanted();                        // the keyboard goes back to the timeline
  void panel_wanted(const QString& title);
  void stacks_wanted(const paceline::viewer::StackPlace& place);
  void page_wanted(int pages);
  void step_wanted(paceline::viewer::Commands::Step step);
  void row_hiding_wanted();           // of the row of the selection
  void row_pinning_wanted();          // of the row of the selection, or its unpinning
  void colour_wanted(bool of_phase);  // of the name of the selection, or of its phase
  void partner_wanted();              // the slice that the selected one started, or was started by
};

}  // namespace paceline::viewer
