// SPDX-License-Identifier: Apache-2.0
// What part of a run is looked at. Widgets change the parts of the state and observe them; none reaches into another. A
// widget that is about one part takes only that part.
#pragma once

#include "viewer/session/arrangement.h"
#include "viewer/session/commands.h"
#include "viewer/session/selection.h"
#include "viewer/session/visible_time.h"

namespace paceline::viewer {

struct ViewState {
  explicit ViewState(const Run& shown) : run(shown) {}

  const Run& run;
  VisibleTime time{run};
  Arrangement arrangement{run};
  Selection selection{run, time, arrangement};
  Commands commands;
};

}  // namespace paceline::viewer
