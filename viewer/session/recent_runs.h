// SPDX-License-Identifier: Apache-2.0
// What the viewer remembers between its starts: the runs that were opened last, and the theme. Kept in the user's
// configuration directory.
#pragma once

#include <QString>
#include <vector>

#include "viewer/session/run_source.h"

namespace paceline::viewer {

// The latest first, at most ten, with absolute paths. A run that was merged from several files is one of them.
std::vector<RunSource> recent_runs();
// A run of the same files that was remembered with other choices is replaced.
void remember_run(const RunSource& source);

// "light", "dark", or empty for that of the desktop.
QString remembered_theme();
void remember_theme(const QString& theme);

}  // namespace paceline::viewer
