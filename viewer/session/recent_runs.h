// What the viewer remembers between its starts: the runs that were opened last, and the theme. Kept in the user's
// configuration directory.
#pragma once

#include <QString>
#include <QStringList>

namespace paceline::viewer {

// The latest first, at most ten, as absolute paths.
QStringList recent_runs();
void remember_run(const QString& path);

// "light", "dark", or empty for that of the desktop.
QString remembered_theme();
void remember_theme(const QString& theme);

}  // namespace paceline::viewer
