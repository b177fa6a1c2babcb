// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/go_to_dialog.h"

namespace paceline::viewer {

GoToDialog::GoToDialog(const Run& run, bool names, QWidget* parent)
    : Picker("Go to", names ? "1.25 s, iteration 12, rank 3, or a part of a name" : "1.25 s, iteration 12, or rank 3",
             "Places", parent),
      run_(run),
      names_(names) {
  refill();
}

void GoToDialog::fill(const QString& text) {
  destinations_ = destinations(run_, text, names_);
  for (std::size_t i = 0; i < destinations_.found.size(); ++i) add(destinations_.found[i].text, i);
  set_message(destinations_.missing);
}

}  // namespace paceline::viewer
