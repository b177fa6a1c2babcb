// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/notes_panel.h"

#include <QHeaderView>

#include "viewer/text/time_text.h"

namespace paceline::viewer {

NotesPanel::NotesPanel(Document&, VisibleTime& time) : QTableWidget(0, 2), time_(time) {
  setAccessibleName("Bookmarks and their notes");
  setHorizontalHeaderLabels({"Time", "Note: a double click edits it; M on the timeline sets a bookmark"});
  setFrameShape(QFrame::NoFrame);
  setShowGrid(false);
  setTabKeyNavigation(false);
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setSelectionMode(QAbstractItemView::SingleSelection);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(22);
  horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  horizontalHeader()->setStretchLastSection(true);
  setColumnWidth(time_column, 160);
  connect(&time, &VisibleTime::bookmarks_changed, this, &NotesPanel::fill);
  connect(this, &QTableWidget::cellChanged, this, &NotesPanel::take_text);
  connect(this, &QTableWidget::cellClicked, this, [this](int row) { go_to(row); });
  fill();
}

void NotesPanel::fill() {
  if (filling_) return;  // this panel made the change
  filling_ = true;
  const auto& bookmarks = time_.bookmarks();
  const double span = time_.axis().whole().length();
  setRowCount(static_cast<int>(bookmarks.size()));
  for (int row = 0; row < rowCount(); ++row) {
    const Bookmark& bookmark = bookmarks[static_cast<std::size_t>(row)];
    auto* time = new QTableWidgetItem(time_text(bookmark.time_ns, 1e3, span));
    time->setFlags(time->flags() & ~Qt::ItemIsEditable);
    setItem(row, time_column, time);
    setItem(row, text_column, new QTableWidgetItem(bookmark.text));
  }
  filling_ = false;
}

void NotesPanel::take_text(int row, int column) {
  if (filling_ || column != text_column) return;
  std::vector<Bookmark> bookmarks = time_.bookmarks();
  if (static_cast<std::size_t>(row) >= bookmarks.size()) return;
  bookmarks[static_cast<std::size_t>(row)].text = item(row, text_column)->text();
  filling_ = true;
  time_.set_bookmarks(std::move(bookmarks));
  filling_ = false;
}

void NotesPanel::go_to(int row) {
  const double time = time_.bookmarks()[static_cast<std::size_t>(row)].time_ns;
  const double half = time_.axis().visible().length() / 2;
  time_.jump_to({time - half, time + half});
}

}  // namespace paceline::viewer
