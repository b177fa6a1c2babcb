// SPDX-License-Identifier: Apache-2.0
// Where the text of "Go to" leads: a time, an iteration, a rank, or the slices of a name.
#pragma once

#include <QString>
#include <vector>

#include "viewer/session/view_state.h"

namespace paceline::viewer {

struct Destination {
  enum class Kind { time, iteration, rank, name };

  Kind kind = Kind::time;
  QString text;           // for the list
  double time_ns = 0;     // kind time
  std::size_t index = 0;  // into Run::iterations or Run::ranks
  QString name;           // to search for
};

struct Destinations {
  std::vector<Destination> found;  // the best first, at most a few dozen
  QString missing;                 // why nothing was found; empty for an empty text
};

// Completes the text: "1.25 s" is a time, "iteration 12" or "it 12" an iteration, "rank 3" a rank, "12" each of them,
// and any other text a part of a name. Names are left out without `names`. Cost: linear in the iterations, the ranks
// and the first 100,000 kinds.
Destinations destinations(const Run& run, const QString& text, bool names);

// Shows the time, which gets a mark, selects the iteration, scrolls to the rank and unfolds it, or searches for the
// name.
void go_to(ViewState& state, const Destination& destination);

}  // namespace paceline::viewer
