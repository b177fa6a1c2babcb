// SPDX-License-Identifier: Apache-2.0
// Colours of ranges, calls and kernels. Each of the twelve phases has its own, the same in every view and in every run;
// slices without a phase get a colour from their name. The user may choose others (session/colour_choices.h).
//
// The phases' colours come from Okabe and Ito's palette ("Color Universal Design", 2008), with greys, a brown and a
// purple. A test holds every pair apart as people with protanopia, deuteranopia and tritanopia see them.
// Communication, the phase that users look for first, has the strongest colour.
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "analysis/phases/phase_rules.h"
#include "analysis/phases/phases.h"
#include "analysis/trace/trace.h"
#include "viewer/session/colour_choices.h"

namespace paceline::viewer {

struct Theme {
  bool dark = false;
  QRgb background, row, row_line, header, header_text, faint_text, text, grid, ruler;
  QRgb container;  // of slices that only wrap others: iterations
  QRgb selection, crosshair;
  std::shared_ptr<const ColourChoices> chosen = nullptr;  // instead of the colours below; nullptr: none

  static Theme light();
  static Theme night();
  // The theme that fits the desktop's palette, with the user's colours. To be called in the UI thread.
  static Theme of(const QPalette& palette);
};

// In the order in which every view lists the phases.
inline constexpr std::array<analysis::Phase, analysis::phase_count> phase_order{
    analysis::Phase::startup,   analysis::Phase::preprocess,    analysis::Phase::forward,  analysis::Phase::backward,
    analysis::Phase::optimizer, analysis::Phase::communication, analysis::Phase::evaluate, analysis::Phase::checkpoint,
    analysis::Phase::copy,      analysis::Phase::launch,        analysis::Phase::idle,     analysis::Phase::other};

QRgb phase_colour(analysis::Phase phase, const Theme& theme);
QString phase_text(analysis::Phase phase);  // its name

// Depends on the name alone, so that it stays the same from run to run. Letters decide the hue and digits the
// lightness: layer1.0.conv1 and layer4.1.conv2 look alike, but can be told apart.
QRgb name_colour(std::string_view name, const Theme& theme);
// The colour of a slice: the one chosen for its name, else that of its phase if the rules give it one, else that of its
// name.
QRgb kind_colour(const analysis::Trace& trace, const analysis::PhaseTable& rules, analysis::KindId kind,
                 const Theme& theme);

// The contrast ratio of two colours (WCAG 2.1), from 1 to 21.
double contrast(QRgb a, QRgb b);
// Black or white, with a contrast of at least 4.5 to this background.
QRgb text_colour_on(QRgb background);

// The colours of a run's slices. The rules are applied once for each kind of slice; after that a colour is one look-up
// in a table.
class SliceColours {
 public:
  SliceColours(const analysis::Trace& trace, const Theme& theme)
      : trace_(trace), theme_(theme), rules_(trace), known_(trace.kinds.size()) {}

  QRgb of(analysis::KindId kind) {
    if (known_[kind] == 0) known_[kind] = kind_colour(trace_, rules_, kind, theme_);
    return known_[kind];
  }

 private:
  const analysis::Trace& trace_;
  Theme theme_;
  analysis::PhaseTable rules_;
  std::vector<QRgb> known_;  // by kind; 0 is no colour, since all are opaque
};

}  // namespace paceline::viewer
