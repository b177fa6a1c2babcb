// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/colour_choices.h"

#include <QApplication>
#include <QEvent>
#include <QWidget>
#include <utility>

namespace paceline::viewer {
namespace colour_choices {

std::shared_ptr<const ColourChoices>& current() {
  static auto choices = std::make_shared<const ColourChoices>();
  return choices;
}

}  // namespace colour_choices

const std::shared_ptr<const ColourChoices>& chosen_colours() { return colour_choices::current(); }

void choose_colours(ColourChoices choices) {
  if (choices == *chosen_colours()) return;
  colour_choices::current() = std::make_shared<const ColourChoices>(std::move(choices));
  // Widgets make their colours anew as after a change of the theme.
  for (QWidget* widget : QApplication::allWidgets()) {
    QEvent changed(QEvent::PaletteChange);
    QCoreApplication::sendEvent(widget, &changed);
    widget->update();
  }
}

void choose_colour(analysis::Phase phase, std::optional<QRgb> colour) {
  ColourChoices choices = *chosen_colours();
  choices.phases[static_cast<std::size_t>(phase)] = colour.value_or(0);
  choose_colours(std::move(choices));
}

void choose_colour(const std::string& name, std::optional<QRgb> colour) {
  ColourChoices choices = *chosen_colours();
  choices.names.erase(name);
  if (colour) choices.names.emplace(name, *colour);
  choose_colours(std::move(choices));
}

}  // namespace paceline::viewer
