// SPDX-License-Identifier: Apache-2.0
// The widths of a table's columns.
#pragma once

#include <QTableView>

namespace paceline::viewer {

// Roles of a cell beside its text: the number that it shows, and the unit of that number ("ns"; "" of a count).
inline constexpr int value_role = Qt::UserRole + 10, unit_role = Qt::UserRole + 11;

// Makes columns as wide as their titles and texts need, and never narrower, so that a table does not tremble while its
// figures change. A text wider than `widest` pixels is cut at its end; a number never is. Columns that stretch are left
// alone. A text may have several lines. Costs one look at each cell; only the longest texts are measured.
void widen_columns(QTableView& view, int widest);

}  // namespace paceline::viewer
