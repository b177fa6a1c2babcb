// SPDX-License-Identifier: Apache-2.0
// Finds an action by words of its name: the table of actions as a list that shrinks as the user types.
#pragma once

#include <QDialog>
#include <QLineEdit>
#include <QListWidget>

#include "viewer/session/actions.h"

namespace paceline::viewer {

class CommandPalette : public QDialog {
  Q_OBJECT

 public:
  explicit CommandPalette(QWidget* parent = nullptr);

  // The chosen action; nullptr if the dialog was closed without one.
  const Action* chosen() const { return chosen_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill();
  void choose();

  QLineEdit* text_;
  QListWidget* list_;
  const Action* chosen_ = nullptr;
};

}  // namespace paceline::viewer
