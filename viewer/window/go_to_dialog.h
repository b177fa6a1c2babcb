// SPDX-License-Identifier: Apache-2.0
// Asks for a time, an iteration, a rank or a name, and lists what the text may mean.
#pragma once

#include "viewer/session/destination.h"
#include "viewer/window/picker.h"

namespace paceline::viewer {

class GoToDialog : public Picker {
  Q_OBJECT

 public:
  // `names`: whether the page can search for names.
  GoToDialog(const Run& run, bool names, QWidget* parent = nullptr);

  // The chosen destination; nullptr if the dialog was closed without one.
  const Destination* chosen() const { return taken() ? &destinations_.found[*taken()] : nullptr; }

 protected:
  void fill(const QString& text) override;

 private:
  const Run& run_;
  bool names_;
  Destinations destinations_;
};

}  // namespace paceline::viewer
