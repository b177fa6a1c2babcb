// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/command_palette.h"

#include <algorithm>

namespace paceline::viewer {
namespace command_palette {

QString text_of(const Action& action) {
  QString text = *action.text != '\0' ? QString(action.text).remove('&') : QString(action.help);
  text[0] = text[0].toUpper();
  return text;
}

// What the words are looked for in.
QString searched_of(const Action& action) {
  return QString("%1 %2 %3").arg(action.section, text_of(action), action.help);
}

}  // namespace command_palette

CommandPalette::CommandPalette(QWidget* parent) : Picker("Find an action", "Words of an action", "Actions", parent) {
  refill();
}

void CommandPalette::fill(const QString& text) {
  const QStringList words = text.split(' ', Qt::SkipEmptyParts);
  const auto table = action_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].input == Action::Input::mouse) continue;
    const QString searched = command_palette::searched_of(table[i]);
    const bool fits =
        std::ranges::all_of(words, [&](const QString& word) { return searched.contains(word, Qt::CaseInsensitive); });
    if (fits) add(QString("%1   (%2)").arg(command_palette::text_of(table[i]), keys_text(table[i])), i, table[i].help);
  }
}

}  // namespace paceline::viewer
