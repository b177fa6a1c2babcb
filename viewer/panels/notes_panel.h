// SPDX-License-Identifier: Apache-2.0
// The bookmarks of the run with their texts, which can be edited here. A click goes to a bookmark.
#pragma once

#include <QTableWidget>

#include "viewer/session/document.h"
#include "viewer/session/visible_time.h"

namespace paceline::viewer {

class NotesPanel : public QTableWidget {
  Q_OBJECT

 public:
  NotesPanel(Document& document, VisibleTime& time);

  enum Column { time_column, text_column };

 private:
  void fill();
  void take_text(int row, int column);  // that the user wrote
  void go_to(int row);

  VisibleTime& time_;
  bool filling_ = false;
};

}  // namespace paceline::viewer
