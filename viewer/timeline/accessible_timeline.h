// SPDX-License-Identifier: Apache-2.0
// The rows and slices of a timeline for screen readers: a tree with the rows below the timeline, and below each row of
// slices those that are in view. Pressing a slice selects it.
#pragma once

namespace paceline::viewer {

// Makes Qt offer this tree for each TimelineWidget. Call it before the first one is made, because where a screen reader
// runs, a change of the widget makes its interface. May be called more than once.
void install_accessible_timeline();

}  // namespace paceline::viewer
