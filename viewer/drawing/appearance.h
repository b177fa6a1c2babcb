// SPDX-License-Identifier: Apache-2.0
// The theme of the application.
#pragma once

#include <QApplication>
#include <QString>

namespace paceline::viewer {

// "light" and "dark" set Qt's Fusion style with a palette of this program. Any other text means the desktop's theme.
void apply_theme(const QString& theme);

}  // namespace paceline::viewer
