// SPDX-License-Identifier: Apache-2.0
// Everything that can be done by key or menu, in one table. The menus, the keys of the timeline and the sheet that `?`
// shows are made from it. A new action is one row of actions.cpp.
#pragma once

#include <QKeyCombination>
#include <QString>
#include <span>

#include "viewer/session/view_state.h"

namespace paceline::viewer {

// Actions that concern more than one page.
enum class WindowAction {
  none,
  open_directory,
  open_file,
  open_latest,
  merge_files,
  compare_runs,
  link_tabs,
  save_view,
  export_picture,
  export_table,
  export_trace,
  copy_command,
  go_to,
  close,
  quit,
  theme_light,
  theme_dark,
  theme_system,
  larger,
  smaller,
  show_palette,
  show_keys
};

struct Action {
  // Where it works: everywhere in the window, or while the timeline has the keyboard. Mouse moves are only described
  // here; the widgets handle them.
  enum class Input { window, timeline, mouse };

  const char* section;  // of the sheet
  Input input;
  const char* keys;                    // as QKeySequence reads them, alternatives separated by spaces; or a mouse move
  const char* help;                    // the effect, on the sheet. Neighbours with the same text share a line.
  void (*view)(ViewState&) = nullptr;  // the effect on a page, or …
  const char* menu = "";               // "" if no menu has it
  const char* text = "";               // in the menu
  WindowAction window = WindowAction::none;  // … on the window
};

// In the order of the sheet and of each menu.
std::span<const Action> action_table();

// How the menus and the sheet show its keys: the first of the alternatives, or the mouse move.
QString keys_text(const Action& action);

// The action of the timeline that has this key with these modifiers, or else the key alone, since some keyboards need
// Shift for it; nullptr if none has.
const Action* timeline_action(QKeyCombination keys);

}  // namespace paceline::viewer
