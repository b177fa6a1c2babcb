// SPDX-License-Identifier: Apache-2.0
// Where a run comes from: one path, or several files and directories that were merged, with what the user chose for
// them.
#pragma once

#include <QString>
#include <QStringList>
#include <memory>

#include "analysis/load/merge.h"
#include "viewer/session/run.h"

namespace paceline::viewer {

struct RunSource {
  QStringList paths;
  analysis::MergeChoices choices = {};
  bool merged = false;  // opened as load_merged() does, which leaves out what does not belong to the run

  // For titles, and for the saved view: the path, or "a.pace + 2 more".
  QString path() const;
  // The same files, whatever the working directory is.
  RunSource absolute() const;
};

// Throws Error as open_run() does.
std::shared_ptr<const Run> open_source(const RunSource& source, const analysis::Progress& progress = {});

// The path of an ordinary run, and a JSON object for all others.
QString source_to_text(const RunSource& source);
// Without paths if the text is damaged.
RunSource source_from_text(const QString& text);

}  // namespace paceline::viewer
