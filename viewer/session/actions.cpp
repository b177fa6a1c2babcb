// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/actions.h"

#include <QKeySequence>
#include <QStringList>

#include "viewer/session/recent_runs.h"

namespace paceline::viewer {
namespace action_rows {

using State = ViewState;
using enum Commands::Step;
using enum Arrangement::RankOrder;
constexpr auto timeline = Action::Input::timeline, window = Action::Input::window, mouse = Action::Input::mouse;
constexpr double key_zoom = 1.5, pan_share = VisibleTime::pan_share;
constexpr const char *move = "Move", *select = "Select and measure", *find = "Find and show", *runs = "Runs";
constexpr const char *panels = "Panels", *panels_menu = "&Panels";
constexpr const char *file_menu = "&File", *view_menu = "&View", *go_menu = "&Go", *help_menu = "&Help";
// Effects that several lines share.
constexpr const char *zoom_help = "zoom in and out at the pointer", *middle_help = "zoom in and out at the middle";
constexpr const char *pan_help = "move to earlier and later times", *ends_help = "go to the start and end of the run";
constexpr const char *page_help = "scroll the rows by a page", *iterations_help = "go to the next, previous iteration";
constexpr const char* step_help = "select the previous, next slice of the same level";
constexpr const char* row_help = "select the slice below, above in another row";
constexpr const char* rank_help = "select the slice at the same place of the rank below, above";
constexpr const char* name_help = "select the previous, next slice of the same name in its row";
constexpr const char *views_help = "return to the last view, go forward again",
                     *marks_help = "go to the next, previous bookmark";
constexpr const char* hide_help = "hide the rows named like the one of the selection, the rank of the selection";
constexpr const char* order_key_help = "move the rank of the selection down, up";
constexpr const char* level_help = "select the slice around, the first slice inside";
constexpr const char *hit_help = "go to the next, previous hit", *ranks_help = "unfold and fold all ranks";
constexpr const char* order_help = "sort the ranks by number, host, waiting caused, duration";
constexpr const char *counters_help = "unfold and fold all counters", *open_help = "open a run, a file of another tool";

constexpr const char* theme_help = "light theme, dark theme, theme of the desktop";
constexpr const char* size_help = "larger, smaller texts and rows, from the next start on";

// The titles of the panels, as in panels.cpp.
constexpr char phases_title[] = "Phases", ranks_title[] = "Ranks", collectives_title[] = "Collectives",
               names_title[] = "Names", heat_title[] = "Heat map", messages_title[] = "Messages",
               histogram_title[] = "Histogram", path_title[] = "Critical path", what_if_title[] = "What-if",
               sql_title[] = "SQL", flame_title[] = "Flame graph", report_title[] = "Report", hits_title[] = "Hits",
               notes_title[] = "Notes", scaling_title[] = "Scaling", selected_title[] = "Selected";
template <const char* title>
void show_panel(State& state) {
  Q_EMIT state.commands.panel_wanted(title);
}

void zoom_middle(State& state, double factor) { state.time.zoom(state.time.axis().width() / 2.0, factor); }

void show_end(State& state, bool first) {
  const TimeRange whole = state.time.axis().whole();
  const double length = state.time.axis().visible().length();
  const double begin = first ? whole.begin_ns : whole.end_ns - length;
  state.time.show_part({begin, begin + length});
}

void zoom_to_slice(State& state) {
  if (state.selection.slice()) state.time.zoom_to(*state.selection.slice());
}

void pin_selected(State& state) {
  Arrangement& ranks = state.arrangement;
  if (const auto slice = state.selection.slice()) ranks.set_pinned(slice->rank, !ranks.pinned(slice->rank));
}

void hide_selected(State& state) {
  if (const auto slice = state.selection.slice()) state.arrangement.set_rank_hidden(slice->rank, true);
}

void move_selected(State& state, int steps) {
  if (const auto slice = state.selection.slice()) state.arrangement.move_rank(slice->rank, steps);
}

void select_nothing(State& state) {
  state.selection.select(std::nullopt);
  state.selection.select_range(std::nullopt);
  state.time.mark_time(std::nullopt);
}

void pan_view(State& state, double share) { state.time.pan(share * state.time.axis().width()); }

constexpr Action table[] = {
    {move, mouse, "Wheel", "zoom at the pointer"},
    {move, mouse, "Ctrl + wheel", "zoom in fine steps"},
    {move, mouse, "Shift + wheel, drag", "move through time"},
    {move, mouse, "Ctrl + Shift + wheel, wheel over the names", "scroll the rows"},
    {move, window, "Ctrl+Alt+W", "let the wheel alone scroll the rows, or zoom",
     [](State&) { set_wheel_scrolls(!wheel_scrolls()); }, view_menu, "Whee&l scrolls or zooms"},
    {move, mouse, "Drag the edge of the names", "make the column of names wider or narrower"},
    {move, timeline, "F", "show the whole run", [](State& s) { s.time.show_all(); }, view_menu, "&Whole run"},
    {move, timeline, "Backspace", views_help, [](State& s) { s.time.show_previous(); }, view_menu, "&Back"},
    {move, timeline, "Shift+Backspace", views_help, [](State& s) { s.time.show_next(); }, view_menu, "Fo&rward"},
    {move, window, "Ctrl++ Ctrl+=", middle_help, [](State& s) { zoom_middle(s, 0.5); }, view_menu, "Zoom &in"},
    {move, window, "Ctrl+-", middle_help, [](State& s) { zoom_middle(s, 2); }, view_menu, "Zoom &out"},
    {move, timeline, "W + =", zoom_help, [](State& s) { s.time.zoom_at_pointer(1 / key_zoom); }},
    {move, timeline, "S -", zoom_help, [](State& s) { s.time.zoom_at_pointer(key_zoom); }},
    {move, timeline, "A", pan_help, [](State& s) { pan_view(s, -pan_share); }},
    {move, timeline, "D", pan_help, [](State& s) { pan_view(s, pan_share); }},
    {move, timeline, "Home", ends_help, [](State& s) { show_end(s, true); }},
    {move, timeline, "End", ends_help, [](State& s) { show_end(s, false); }},
    {move, timeline, "PgUp", page_help, [](State& s) { Q_EMIT s.commands.page_wanted(-1); }},
    {move, timeline, "PgDown", page_help, [](State& s) { Q_EMIT s.commands.page_wanted(1); }},
    {move, timeline, "]", iterations_help, [](State& s) { s.time.jump_to_iteration(1); }, go_menu, "&Next iteration"},
    {move, timeline, "[", iterations_help, [](State& s) { s.time.jump_to_iteration(-1); }, go_menu,
     "&Previous iteration"},
    {move, timeline, "M", "set or remove a bookmark at the pointer",
     [](State& s) { s.time.toggle_bookmark_here(s.selection.slice()); }, go_menu, "Set or remove &bookmark"},
    {move, timeline, "N", marks_help, [](State& s) { s.time.jump_to_bookmark(true); }, go_menu, "Next boo&kmark"},
    {move, timeline, "Shift+N", marks_help, [](State& s) { s.time.jump_to_bookmark(false); }, go_menu,
     "Previous bookm&ark"},

    {select, mouse, "Click", "select a slice"},
    {select, mouse, "Ctrl + click, Shift + click", "select another slice as well, or no longer"},
    {select, mouse, "Double click", "zoom to a slice or a phase"},
    {select, mouse, "Shift + drag", "measure; the panel shows the phases of that range"},
    {select, mouse, "Ctrl + drag", "select a box: a range of time on some ranks"},
    {select, mouse, "Drag an edge of the range", "adjust it; the edge snaps to slices, unless Ctrl is held"},
    {select, timeline, "R", "select the time of the selected slice",
     [](State& s) { s.selection.select_range_of_slices(); }, go_menu, "&Range of the slice"},
    {select, timeline, "Z", "zoom to the selection", [](State& s) { s.selection.fill_view(); }, view_menu,
     "&Selection"},
    {select, timeline, "Return Enter", "zoom to the selected slice", &zoom_to_slice},
    {select, timeline, "Left", step_help, [](State& s) { Q_EMIT s.commands.step_wanted(previous); }},
    {select, timeline, "Right", step_help, [](State& s) { Q_EMIT s.commands.step_wanted(next); }},
    {select, timeline, "Up", level_help, [](State& s) { Q_EMIT s.commands.step_wanted(out); }},
    {select, timeline, "Down", level_help, [](State& s) { Q_EMIT s.commands.step_wanted(in); }},
    {select, timeline, "Shift+Down", row_help, [](State& s) { Q_EMIT s.commands.step_wanted(row_below); }},
    {select, timeline, "Shift+Up", row_help, [](State& s) { Q_EMIT s.commands.step_wanted(row_above); }},
    {select, timeline, "Ctrl+Down", rank_help, [](State& s) { Q_EMIT s.commands.step_wanted(rank_below); }},
    {select, timeline, "Ctrl+Up", rank_help, [](State& s) { Q_EMIT s.commands.step_wanted(rank_above); }},
    {select, timeline, ",", name_help, [](State& s) { Q_EMIT s.commands.step_wanted(previous_same); }, go_menu,
     "Previous of the same na&me"},
    {select, timeline, ".", name_help, [](State& s) { Q_EMIT s.commands.step_wanted(next_same); }, go_menu,
     "Next of the &same name"},
    {select, timeline, "J", "go to the work that a call started, or to the call",
     [](State& s) { Q_EMIT s.commands.partner_wanted(); }, go_menu, "Call or its &work"},
    {select, timeline, "C", "show and hide the critical path",
     [](State& s) { s.arrangement.set_path_shown(!s.arrangement.path_shown()); }, view_menu, "Critical pat&h"},
    {select, timeline, "P", "pin and unpin the rank of the selection", &pin_selected},
    {select, timeline, "Shift+P", "pin and unpin the row of the selection",
     [](State& s) { Q_EMIT s.commands.row_pinning_wanted(); }, view_menu, "Pin or unpin the r&ow"},
    {select, timeline, "K", "choose a colour for the name, for the phase of the selection",
     [](State& s) { Q_EMIT s.commands.colour_wanted(false); }, view_menu, "Colo&ur of the name…"},
    {select, timeline, "Shift+K", "choose a colour for the name, for the phase of the selection",
     [](State& s) { Q_EMIT s.commands.colour_wanted(true); }, view_menu, "Colour of the phas&e…"},
    {select, timeline, "Esc", "select nothing", &select_nothing},

    {find, window, "Ctrl+F", "find slices whose names contain a text or fit a regular expression",
     [](State& s) { Q_EMIT s.commands.search_wanted(); }, go_menu, "&Find…"},
    {find, window, "Ctrl+G", "go to a time, an iteration, a rank or a name", nullptr, go_menu, "&Go to…",
     WindowAction::go_to},
    {find, window, "Ctrl+Shift+F", "show only slices that fit a condition",
     [](State& s) { Q_EMIT s.commands.filter_wanted(); }, go_menu, "F&ilter…"},
    {find, mouse, "Return", hit_help},
    {find, mouse, "Shift+Return", hit_help},
    {find, mouse, "Click on a rank's name", "unfold and fold its rows"},
    {find, window, "Ctrl+E", ranks_help, [](State& s) { s.arrangement.set_all_collapsed(false); }, view_menu,
     "&Unfold all ranks"},
    {find, window, "Ctrl+Shift+E", ranks_help, [](State& s) { s.arrangement.set_all_collapsed(true); }, view_menu,
     "&Fold all ranks"},
    {find, mouse, "Click on \"CPU time\"", "unfold and fold a rank's counters"},
    {find, window, "Ctrl+U", counters_help, [](State& s) { s.arrangement.set_all_counters_unfolded(true); }, view_menu,
     "Unfold all &counters"},
    {find, window, "Ctrl+Shift+U", counters_help, [](State& s) { s.arrangement.set_all_counters_unfolded(false); },
     view_menu, "Fold all coun&ters"},
    {find, window, "Ctrl+1", order_help, [](State& s) { s.arrangement.sort_ranks(number); }, view_menu,
     "Sort by rank &number"},
    {find, window, "Ctrl+2", order_help, [](State& s) { s.arrangement.sort_ranks(host); }, view_menu, "Sort by &host"},
    {find, window, "Ctrl+3", order_help, [](State& s) { s.arrangement.sort_ranks(waiting_caused); }, view_menu,
     "Sort by &waiting caused"},
    {find, window, "Ctrl+4", order_help, [](State& s) { s.arrangement.sort_ranks(duration); }, view_menu,
     "Sort by &duration"},
    {find, timeline, "H", hide_help, [](State& s) { Q_EMIT s.commands.row_hiding_wanted(); }, view_menu,
     "Hide ro&ws of this name"},
    {find, timeline, "Shift+H", hide_help, &hide_selected, view_menu, "Hide ran&k"},
    {find, window, "Ctrl+H", "show hidden rows and ranks again", [](State& s) { s.arrangement.show_hidden(); },
     view_menu, "Show hi&dden rows and ranks"},
    {find, timeline, "Ctrl+Shift+Down", order_key_help, [](State& s) { move_selected(s, 1); }, view_menu,
     "Move rank do&wn"},
    {find, timeline, "Ctrl+Shift+Up", order_key_help, [](State& s) { move_selected(s, -1); }, view_menu,
     "Move rank u&p"},
    {find, timeline, "T", "show and hide the states of threads",
     [](State& s) { s.arrangement.set_states_shown(!s.arrangement.states_shown()); }, view_menu, "States of &threads"},
    {find, mouse, "Click on a host's name", "unfold and fold its ranks"},
    {find, window, "Ctrl+P", "show and hide the panels",
     [](State& s) { s.arrangement.set_panels_shown(!s.arrangement.panels_shown()); }, view_menu,
     "Show or hide &panels"},

    {find, window, "Ctrl+Alt+L", theme_help, nullptr, view_menu, "&Light theme", WindowAction::theme_light},
    {find, window, "Ctrl+Alt+D", theme_help, nullptr, view_menu, "&Dark theme", WindowAction::theme_dark},
    {find, window, "Ctrl+Alt+Y", theme_help, nullptr, view_menu, "Theme of the des&ktop", WindowAction::theme_system},
    {find, window, "Ctrl+Alt++ Ctrl+Alt+=", size_help, nullptr, view_menu, "Lar&ger texts and rows",
     WindowAction::larger},
    {find, window, "Ctrl+Alt+-", size_help, nullptr, view_menu, "S&maller texts and rows", WindowAction::smaller},

    {panels, window, "Alt+1", "phases of each rank", &show_panel<phases_title>, panels_menu, "&Phases"},
    {panels, window, "Alt+2", "waits and iterations of each rank", &show_panel<ranks_title>, panels_menu, "&Ranks"},
    {panels, window, "Alt+3", "each collective", &show_panel<collectives_title>, panels_menu, "&Collectives"},
    {panels, window, "Alt+4", "statistics of the selection by name", &show_panel<names_title>, panels_menu, "&Names"},
    {panels, window, "Alt+5", "which rank is late in which iteration", &show_panel<heat_title>, panels_menu,
     "&Heat map"},
    {panels, window, "Alt+6", "each message from rank to rank", &show_panel<messages_title>, panels_menu, "&Messages"},
    {panels, window, "Alt+7", "durations of the selected slice's name", &show_panel<histogram_title>, panels_menu,
     "H&istogram"},
    {panels, window, "Alt+8", "stretches of the critical path", &show_panel<path_title>, panels_menu, "Critical p&ath"},
    {panels, window, "Alt+9", "predictions with sliders", &show_panel<what_if_title>, panels_menu, "&What-if"},
    {panels, window, "Alt+0", "SQL over the run", &show_panel<sql_title>, panels_menu, "&SQL"},
    {panels, window, "Alt+Shift+D", "sums of the selected slices, or of those in the box", &show_panel<selected_title>,
     panels_menu, "Selecte&d"},
    {panels, window, "Alt+Shift+F", "time by what is inside what", &show_panel<flame_title>, panels_menu,
     "&Flame graph"},
    {panels, window, "Alt+Shift+R", "the report of the run", &show_panel<report_title>, panels_menu, "R&eport"},
    {panels, window, "Alt+Shift+S", "speed-up and efficiency over several runs", &show_panel<scaling_title>,
     panels_menu, "Sca&ling"},
    {panels, window, "Alt+Shift+H", "the hits of the search", &show_panel<hits_title>, panels_menu, "Hi&ts"},
    {panels, window, "Alt+Shift+N", "the bookmarks with their notes", &show_panel<notes_title>, panels_menu, "N&otes"},
    {panels, mouse, "Click on a row, a cell, a bar or a box", "go to its place on the timeline"},
    {panels, mouse, "Click on a column's title", "sort the table"},

    {runs, window, "Ctrl+O", open_help, nullptr, file_menu, "&Open run…", WindowAction::open_directory},
    {runs, window, "Ctrl+Shift+O", open_help, nullptr, file_menu, "Open &file…", WindowAction::open_file},
    {runs, window, "Ctrl+R", "open the run that was opened last", nullptr, file_menu, "Open the &latest run",
     WindowAction::open_latest},
    {runs, window, "Ctrl+Alt+O", "open several files as one run", nullptr, file_menu, "Open several as &one run…",
     WindowAction::merge_files},
    {runs, window, "Ctrl+Alt+C", "compare two runs on coupled axes", nullptr, file_menu, "Co&mpare two runs…",
     WindowAction::compare_runs},
    {runs, window, "Ctrl+Alt+K", "show in each tab what was selected in the tab before, or no longer", nullptr,
     file_menu, "Lin&k the tabs of runs", WindowAction::link_tabs},
    {runs, window, "Ctrl+S", "save the view, the bookmarks and the layout beside the trace", nullptr, file_menu,
     "&Save the view", WindowAction::save_view},
    {runs, window, "Ctrl+Shift+S", "save a picture of the window (PNG, SVG)", nullptr, file_menu, "Export a &picture…",
     WindowAction::export_picture},
    {runs, window, "Ctrl+Shift+T", "save the table in front (CSV)", nullptr, file_menu, "Export the &table…",
     WindowAction::export_table},
    {runs, window, "Ctrl+Shift+X", "save the selected time and ranks as a trace", nullptr, file_menu,
     "E&xport the selection as a trace…", WindowAction::export_trace},
    {runs, window, "Ctrl+Shift+C", "copy the command that opens this view", nullptr, file_menu,
     "Copy the &command of this view", WindowAction::copy_command},
    {runs, mouse, "Drop files on the window", "open them; several files as one run"},
    {runs, window, "Ctrl+W", "close the run", nullptr, file_menu, "&Close", WindowAction::close},
    {runs, window, "Ctrl+Q", "quit", nullptr, file_menu, "&Quit", WindowAction::quit},
    {runs, window, "Ctrl+K Ctrl+Shift+P", "find an action by its name", nullptr, help_menu, "Find an &action…",
     WindowAction::show_palette},
    {runs, window, "?", "show this sheet", nullptr, help_menu, "&Keys and mouse moves", WindowAction::show_keys},
};

}  // namespace action_rows

std::span<const Action> action_table() { return action_rows::table; }

QString keys_text(const Action& action) {
  return action.input == Action::Input::mouse ? action.keys : QString(action.keys).section(' ', 0, 0);
}

const Action* timeline_action(QKeyCombination keys) {
  const auto with = [](QKeyCombination wanted) -> const Action* {
    for (const Action& action : action_table()) {
      if (action.input != Action::Input::timeline) continue;
      for (const QString& text : QString(action.keys).split(' ')) {
        if (QKeySequence(text)[0] == wanted) return &action;
      }
    }
    return nullptr;
  };
  const Qt::KeyboardModifiers modifiers = keys.keyboardModifiers() & ~Qt::KeypadModifier;
  if (const Action* exact = with(QKeyCombination(modifiers, keys.key()))) return exact;
  return modifiers.testFlag(Qt::ControlModifier) ? nullptr : with(keys.key());
}

}  // namespace paceline::viewer
