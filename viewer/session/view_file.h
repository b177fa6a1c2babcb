// SPDX-License-Identifier: Apache-2.0
// What the user did with a run, in a file beside its trace: the part in view, the selection, bookmarks with their
// texts, the order and folding of the ranks, pinned and hidden rows, chosen colours, and the layout of the docks.
#pragma once

#include <QByteArray>
#include <QString>

#include "viewer/session/view_state.h"

namespace paceline::viewer {

// "runs/resnet.paceline-view" for the run "runs/resnet" or "runs/resnet/".
QString view_file_of(const QString& run_path);

// JSON. Ranks have their numbers, and times are in ns since the run's zero.
QByteArray view_to_json(const ViewState& state, const QByteArray& layout);
// Sets the state, and returns the layout. What the text does not mention stays; what the run does not have is ignored.
// Throws Error where the text is no such JSON.
QByteArray view_from_json(const QByteArray& text, const QString& file, ViewState& state);

// Throws Error where the file cannot be written.
void save_view(const QString& file, const ViewState& state, const QByteArray& layout);

}  // namespace paceline::viewer
