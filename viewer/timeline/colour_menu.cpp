// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/colour_menu.h"

#include <QApplication>
#include <QColorDialog>
#include <QPixmap>

#include "viewer/drawing/colour_vision.h"
#include "viewer/drawing/palette.h"

namespace paceline::viewer {
namespace colour_menu {

QIcon icon_of(QRgb colour) {
  QPixmap square(14, 14);
  square.fill(QColor(colour));
  return QIcon(square);
}

// The colours of the phases that are drawn for the run.
std::vector<QRgb> colours_of(const Run& run, const Theme& theme) {
  std::vector<QRgb> colours;
  for (const analysis::Phase phase : phase_order) {
    bool drawn = false;
    for (const RankIndex& rank : run.ranks) {
      drawn = drawn || rank.phases->totals()[static_cast<std::size_t>(phase)] > 0;
    }
    if (drawn) colours.push_back(phase_colour(phase, theme));
  }
  return colours;
}

void choose(const Coloured& what, std::optional<QRgb> colour) {
  what.phase ? choose_colour(*what.phase, colour) : choose_colour(what.name, colour);
}

}  // namespace colour_menu

QString Coloured::text() const {
  return phase ? "the phase " + phase_text(*phase) : shown_name(name, 40).replace('&', "&&");
}

std::vector<Coloured> coloured_of(const Run& run, const SliceRef& slice) {
  std::vector<Coloured> parts{{.phase = {}, .name = run.trace.names[kind_of(run, slice).name]}};
  const auto phase = run.index->phases().phase(slices_of(run, slice).kind[slice.slice]);
  if (phase && *phase != analysis::Phase::other) parts.push_back({.phase = phase});
  return parts;
}

std::vector<Coloured> coloured_at(const Run& run, std::size_t rank, double time_ns) {
  const auto interval = run.ranks[rank].phases->at(static_cast<std::int64_t>(time_ns));
  if (!interval) return {};
  return {{.phase = interval->phase}};
}

void fill_colour_menu(QMenu& menu, const Coloured& what, const Run& run) {
  const Theme theme = Theme::of(menu.palette());
  const std::vector<QRgb> suggested = suggested_colours(colour_menu::colours_of(run, theme));
  for (const QRgb colour : suggested) {
    menu.addAction(colour_menu::icon_of(colour), QColor(colour).name(), &menu,
                   [what, colour] { colour_menu::choose(what, colour); });
  }
  menu.addSeparator();
  menu.addAction("Another colour…", &menu, [what, suggested, theme] {
    for (std::size_t i = 0; i < suggested.size(); ++i) {
      QColorDialog::setCustomColor(static_cast<int>(i), QColor(suggested[i]));
    }
    const QRgb now = what.phase ? phase_colour(*what.phase, theme) : name_colour(what.name, theme);
    const QColor chosen = QColorDialog::getColor(QColor(now), QApplication::activeWindow(), "Colour of " + what.text());
    if (chosen.isValid()) colour_menu::choose(what, chosen.rgb());
  });
  menu.addAction("Its own colour", &menu, [what] { colour_menu::choose(what, std::nullopt); });
}

}  // namespace paceline::viewer
