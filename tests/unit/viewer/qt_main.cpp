// SPDX-License-Identifier: Apache-2.0
// main() of the tests that need a QApplication: off screen, with the font that the pictures are drawn with.
#include <gtest/gtest.h>

#include <QApplication>
#include <QFont>
#include <QTemporaryDir>

#include "viewer/drawing/appearance.h"

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir configuration;  // not that of the user
  qputenv("XDG_CONFIG_HOME", configuration.path().toLocal8Bit());
  testing::InitGoogleTest(&argc, argv);
  QApplication application(argc, argv);
  paceline::viewer::apply_theme("light");
  QFont font("DejaVu Sans");
  font.setPixelSize(12);
  QApplication::setFont(font);
  return RUN_ALL_TESTS();
}
