// How the application looks where the desktop has no say.
#pragma once

#include <QApplication>
#include <QString>

namespace paceline::viewer {

// "light" and "dark" set Qt's own style with a palette of ours; anything else keeps the desktop's.
void apply_theme(const QString& theme);

}  // namespace paceline::viewer
