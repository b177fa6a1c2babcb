// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/columns.h"

#include <QFontMetrics>
#include <QHeaderView>
#include <algorithm>
#include <array>
#include <cmath>

namespace paceline::viewer {
namespace columns {

constexpr int margin = 18;          // of a cell
constexpr int sort_indicator = 20;  // beside a title

// Shaping a text takes microseconds, and a table has 100,000 of them: widths of letters are added up.
class TextWidths {
 public:
  explicit TextWidths(const QFont& font) : metrics_(font) { widths_.fill(-1); }

  double of(const QString& text) {
    double sum = 0;
    for (const QChar letter : text) {
      if (letter.unicode() >= widths_.size()) return metrics_.horizontalAdvance(text);  // the letters may be joined
      double& width = widths_[letter.unicode()];
      if (width < 0) width = metrics_.horizontalAdvance(letter);
      sum += width;
    }
    return sum;
  }

 private:
  QFontMetricsF metrics_;
  std::array<double, 0x250> widths_;  // of the letters of Latin scripts; below 0 until they are measured
};

int width_of(const QTableView& view, int column) {
  const QAbstractItemModel& model = *view.model();
  TextWidths widths(view.font());
  const QString title = model.headerData(column, Qt::Horizontal).toString();
  double width = widths.of(title) + (view.isSortingEnabled() ? sort_indicator : 0);
  qsizetype longest = 0;
  for (int row = 0; row < model.rowCount(); ++row) {
    const QString text = model.index(row, column).data().toString();
    if (text.size() + 1 < longest) continue;  // one narrow character more does not make a text wider than the longest
    longest = std::max(longest, text.size());
    for (const QString& line : text.split('\n')) width = std::max(width, widths.of(line));
  }
  return int(std::ceil(width));
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
