// Colours: twelve for the phases, the same in every view and in every run; the rest from the name.
//
// The phases' colours are Okabe and Ito's palette ("Color Universal Design", 2008) with three of Paul Tol's muted
// scheme and greys: they stay apart under the common kinds of colour blindness, and the phase that costs most thought,
// communication, has the strongest.
#pragma once

#include <QColor>
#include <QPalette>
#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/metrics/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::viewer {

struct Theme {
  bool dark = false;
  QRgb background, row, row_line, header, header_text, faint_text, text, grid, ruler;
  QRgb container;  // of slices that only wrap others: iterations
  QRgb selection, crosshair;

  static Theme light();
  static Theme night();
  // The one that fits the desktop's palette.
  static Theme of(const QPalette& palette);
};

// In the order in which every view lists the phases.
inline constexpr std::array<analysis::Phase, analysis::phase_count> phase_order{
    analysis::Phase::startup,   analysis::Phase::preprocess,    analysis::Phase::forward,  analysis::Phase::backward,
    analysis::Phase::optimizer, analysis::Phase::communication, analysis::Phase::evaluate, analysis::Phase::checkpoint,
    analysis::Phase::copy,      analysis::Phase::launch,        analysis::Phase::idle,     analysis::Phase::other};

QRgb phase_colour(analysis::Phase phase, const Theme& theme);

// By name alone, so that it stays the same from run to run. Digits do not count: layer1.0.conv1 and layer4.1.conv2
// look alike, which shows where a kind of layer takes its time.
QRgb name_colour(std::string_view name, const Theme& theme);

// Black or white, whichever is easier to read on it.
QRgb text_colour_on(QRgb background);

// The colours of a run's slices: their phase's where the rules give them one, else their name's. The rules are asked
// once for each kind of slice; after that a colour is one look into a table.
class SliceColours {
 public:
  SliceColours(const analysis::Trace& trace, const Theme& theme)
      : trace_(&trace), theme_(theme), latest_(trace.kinds.size()) {}

  QRgb of(const analysis::Rank& rank, const analysis::Track& track, std::uint32_t slice);

 private:
  const analysis::Trace* trace_;
  Theme theme_;
  struct Latest {
    std::uint64_t kind = 0;
    QRgb colour = 0;
  };
  QRgb look_up(const analysis::Rank& rank, const analysis::Track& track, std::uint32_t slice, std::uint64_t kind);

  std::vector<Latest> latest_;  // by kind
  std::unordered_map<std::uint64_t, QRgb> known_;
};

}  // namespace paceline::viewer
