// SPDX-License-Identifier: Apache-2.0
// What can be saved of a page: a picture, the table in front, the selection as a trace, and the command that opens the
// same view.
#pragma once

#include <QString>
#include <QStringList>
#include <QTableView>

#include "viewer/panels/slices_in.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

// As pixels, or as SVG with its text as text if the name ends with .svg. Throws Error where the file cannot be written,
// or its ending names no format of pictures.
void save_picture(QWidget& widget, const QString& file);

// The table that is in sight; nullptr if none is.
QTableView* table_in_front(QWidget& page);
// As RFC 4180 has it, with a header, in the order on screen.
QString table_csv(const QAbstractItemModel& model);
void save_table(const QAbstractItemModel& model, const QString& file);

// The formats of traces that one file holds, as filters for a dialog: "perfetto (*.perfetto)".
QStringList trace_filters();
// Writes the part of the run, all of it if nothing is selected, in the format of the filter. Throws Error. Cost: that
// of `paceline export`, so it belongs into a worker thread.
void save_trace(const Run& run, const Part& part, const QString& filter, const QString& file);

// "paceline view run2 --from 1500000ns --to 2000000ns", quoted for a shell.
QString view_command(const ViewState& state);

}  // namespace paceline::viewer
