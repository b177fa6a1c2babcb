// SPDX-License-Identifier: Apache-2.0
// The menu in which the user chooses a colour for a phase or for a name.
#pragma once

#include <QMenu>
#include <optional>
#include <string>
#include <vector>

#include "viewer/session/run.h"

namespace paceline::viewer {

// What gets the colour: the phase, or else all slices of this name.
struct Coloured {
  std::optional<analysis::Phase> phase = {};
  std::string name = {};

  QString text() const;  // "the phase forward", "conv1"
};
// The name of the slice, and its phase if it has one.
std::vector<Coloured> coloured_of(const Run& run, const SliceRef& slice);
// The phase that a rank is in at this time, if it is in one.
std::vector<Coloured> coloured_at(const Run& run, std::size_t rank, double time_ns);

// Fills the menu: colours that everybody can tell from those of the run's phases, a dialog for any other, and the
// colour that it has by itself. The choice holds at once, for all runs (session/colour_choices.h).
void fill_colour_menu(QMenu& menu, const Coloured& what, const Run& run);

}  // namespace paceline::viewer
