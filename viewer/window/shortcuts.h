// SPDX-License-Identifier: Apache-2.0
// The sheet of keys and mouse moves that `?` shows, made from the table of actions.
#pragma once

#include <QDialog>

namespace paceline::viewer {

class ShortcutSheet : public QDialog {
 public:
  explicit ShortcutSheet(QWidget* parent = nullptr);
};

}  // namespace paceline::viewer
