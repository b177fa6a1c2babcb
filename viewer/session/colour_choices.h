// SPDX-License-Identifier: Apache-2.0
// Colours that the user chose for phases and names, instead of those that they have by themselves. They hold for all
// open runs, since a phase or a name has one colour everywhere, and are saved with the view of each run.
#pragma once

#include <QColor>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analysis/phases/phases.h"

namespace paceline::viewer {

struct ColourChoices {
  std::array<QRgb, analysis::phase_count> phases{};  // 0: not chosen
  std::map<std::string, QRgb, std::less<>> names;

  bool operator==(const ColourChoices&) const = default;
};

// Those that hold now; never nullptr. They do not change, so that worker threads may keep them. To be called in the UI
// thread.
const std::shared_ptr<const ColourChoices>& chosen_colours();
// From now on these hold. All widgets are drawn again.
void choose_colours(ColourChoices choices);
// Changes one of them; nothing: the colour that it has by itself.
void choose_colour(analysis::Phase phase, std::optional<QRgb> colour);
void choose_colour(const std::string& name, std::optional<QRgb> colour);

}  // namespace paceline::viewer
