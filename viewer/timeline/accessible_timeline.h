// The rows and slices of a timeline for screen readers: a tree with the rows below the timeline, and below each row of
// slices those that are in view. Pressing a slice selects it.
#pragma once

#include <QString>

#include "viewer/session/run.h"

namespace paceline::viewer {

// What a screen reader reads out: "backward, 32.99 ms, rank 3, main thread".
QString slice_text(const Run& run, const SliceRef& slice);

// Makes Qt offer this tree for each TimelineWidget. May be called more than once.
void install_accessible_timeline();

}  // namespace paceline::viewer
