// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/columns.h"

#include <QFontMetrics>
#include <QHeaderView>
#include <algorithm>

namespace paceline::viewer {
namespace columns {

constexpr int margin = 18;          // of a cell
constexpr int sort_indicator = 20;  // beside a title

int width_of(const QTableView& view, int column) {
  const QAbstractItemModel& model = *view.model();
  const QFontMetrics metrics(view.font());
  const QString title = model.headerData(column, Qt::Horizontal).toString();
  int width = metrics.horizontalAdvance(title) + (view.isSortingEnabled() ? sort_indicator : 0);
  qsizetype longest = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    const QString text = model.index(row, column).data().toString();
    if (text.size() + 1 < longest) continue;  // one narrow character more does not make a text wider than the longest
    longest = std::max(longest, text.size());
    for (const QString& line : text.split('\n')) width = std::max(width, metrics.horizontalAdvance(line));
  }
  return width;
}

}  // namespace columns

void widen_columns(QTableView& view, int widest) {
  const QAbstractItemModel& model = *view.model();
  for (int column = 0; column < model.columnCount(); ++column) {
    if (view.horizontalHeader()->sectionResizeMode(column) == QHeaderView::Stretch) continue;
    int width = columns::width_of(view, column);
    const bool right = (model.headerData(column, Qt::Horizontal, Qt::TextAlignmentRole).toInt() & Qt::AlignRight) != 0;
    if (!right) width = std::min(width, widest);
    view.setColumnWidth(column, std::max(view.columnWidth(column), width + columns::margin));
  }
}

}  // namespace paceline::viewer
