// SPDX-License-Identifier: Apache-2.0
// Finds an action by words of its name: the table of actions as a list that shrinks as the user types.
#pragma once

#include "viewer/session/actions.h"
#include "viewer/window/picker.h"

namespace paceline::viewer {

class CommandPalette : public Picker {
  Q_OBJECT

 public:
  explicit CommandPalette(QWidget* parent = nullptr);

  // The chosen action; nullptr if the dialog was closed without one.
  const Action* chosen() const { return taken() ? &action_table()[*taken()] : nullptr; }

 protected:
  void fill(const QString& text) override;
};

}  // namespace paceline::viewer
