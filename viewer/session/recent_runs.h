// SPDX-License-Identifier: Apache-2.0
// What the viewer remembers between its starts: the runs that were opened last with their views, those that were open
// at its end, and the looks. Kept in the user's configuration directory.
#pragma once

#include <QString>
#include <vector>

#include "viewer/session/run_source.h"

namespace paceline::viewer {

// The latest first, at most ten, with absolute paths. A run that was merged from several files is one of them.
std::vector<RunSource> recent_runs();
// A run of the same files that was remembered with other choices is replaced.
void remember_run(const RunSource& source);

// Those that were open when the window was closed, in the order of their tabs.
std::vector<RunSource> runs_left_open();
void remember_open(const std::vector<RunSource>& runs);

// Where the view of a run is kept that the user saved nowhere: one file for each of the recent runs.
QString kept_view_file(const QString& run_path);

// "light", "dark", or empty for that of the desktop.
QString remembered_theme();
void remember_theme(const QString& theme);

// Whether the mouse wheel alone scrolls the rows, and zooms with Ctrl, as in Perfetto.
bool wheel_scrolls();
void set_wheel_scrolls(bool on);

// The size of texts, rows and lines that the user asked for; 1 at first.
double remembered_scale();
void remember_scale(double factor);

}  // namespace paceline::viewer
