#include "viewer/session/actions.h"

#include <QKeySequence>
#include <QStringList>
#include <algorithm>

namespace paceline::viewer {
namespace action_rows {

using State = ViewState;
using enum ViewState::Step;
constexpr auto timeline = Action::Input::timeline, window = Action::Input::window, mouse = Action::Input::mouse;
constexpr double key_zoom = 1.5, pan_share = ViewState::pan_share;
constexpr const char *move = "Move", *select = "Select and measure", *find = "Find and show", *runs = "Runs";
constexpr const char *file_menu = "&File", *view_menu = "&View", *go_menu = "&Go", *help_menu = "&Help";
// Effects that several lines share.
constexpr const char *zoom_help = "zoom in and out at the pointer", *middle_help = "zoom in and out at the middle";
constexpr const char *pan_help = "move to earlier and later times", *ends_help = "go to the start and end of the run";
constexpr const char *page_help = "scroll the rows by a page", *iterations_help = "go to the next, previous iteration";
constexpr const char* step_help = "select the previous, next slice of the same level";
constexpr const char* level_help = "select the slice around, the first slice inside";
constexpr const char *hit_help = "go to the next, previous hit", *ranks_help = "unfold and fold all ranks";
constexpr const char *counters_help = "unfold and fold all counters", *open_help = "open a run, a file of another tool";

void zoom_middle(State& state, double factor) { state.zoom(state.axis().width() / 2.0, factor); }

void show_end(State& state, bool first) {
  const TimeRange whole = state.axis().whole();
  const double length = state.axis().visible().length();
  const double begin = first ? whole.begin_ns : whole.end_ns - length;
  state.show_part({begin, begin + length});
}

void zoom_to_slice(State& state) {
  if (state.selected()) state.zoom_to(*state.selected());
}

void select_nothing(State& state) {
  state.select(std::nullopt);
  state.select_range(std::nullopt);
}

void pan_view(State& state, double share) { state.pan(share * state.axis().width()); }

constexpr Action table[] = {
    {move, mouse, "Wheel", "zoom at the pointer"},
    {move, mouse, "Ctrl + wheel", "zoom in fine steps"},
    {move, mouse, "Shift + wheel, drag", "move through time"},
    {move, mouse, "Alt + wheel, wheel over the names", "scroll the rows"},
    {move, timeline, "F", "show the whole run", [](State& s) { s.show_all(); }, view_menu, "&Whole run"},
    {move, timeline, "Backspace", "return to the last view", [](State& s) { s.show_previous(); }, view_menu, "&Back"},
    {move, window, "Ctrl++ Ctrl+=", middle_help, [](State& s) { zoom_middle(s, 0.5); }, view_menu, "Zoom &in"},
    {move, window, "Ctrl+-", middle_help, [](State& s) { zoom_middle(s, 2); }, view_menu, "Zoom &out"},
    {move, timeline, "W + =", zoom_help, [](State& s) { s.zoom_at_pointer(1 / key_zoom); }},
    {move, timeline, "S -", zoom_help, [](State& s) { s.zoom_at_pointer(key_zoom); }},
    {move, timeline, "A", pan_help, [](State& s) { pan_view(s, -pan_share); }},
    {move, timeline, "D", pan_help, [](State& s) { pan_view(s, pan_share); }},
    {move, timeline, "Home", ends_help, [](State& s) { show_end(s, true); }},
    {move, timeline, "End", ends_help, [](State& s) { show_end(s, false); }},
    {move, timeline, "PgUp", page_help, [](State& s) { Q_EMIT s.page_wanted(-1); }},
    {move, timeline, "PgDown", page_help, [](State& s) { Q_EMIT s.page_wanted(1); }},
    {move, timeline, "]", iterations_help, [](State& s) { s.jump_to_iteration(1); }, go_menu, "&Next iteration"},
    {move, timeline, "[", iterations_help, [](State& s) { s.jump_to_iteration(-1); }, go_menu, "&Previous iteration"},

    {select, mouse, "Click", "select a slice"},
    {select, mouse, "Double click", "zoom to a slice or a phase"},
    {select, mouse, "Shift + drag", "measure; the panel shows the phases of that range"},
    {select, timeline, "Z", "zoom to the selection", [](State& s) { s.zoom_to_selection(); }, view_menu, "&Selection"},
    {select, timeline, "Return Enter", "zoom to the selected slice", &zoom_to_slice},
    {select, timeline, "Left", step_help, [](State& s) { Q_EMIT s.step_wanted(previous); }},
    {select, timeline, "Right", step_help, [](State& s) { Q_EMIT s.step_wanted(next); }},
    {select, timeline, "Up", level_help, [](State& s) { Q_EMIT s.step_wanted(outward); }},
    {select, timeline, "Down", level_help, [](State& s) { Q_EMIT s.step_wanted(inward); }},
    {select, timeline, "Esc", "select nothing", &select_nothing},

    {find, window, "Ctrl+F", "find slices by name in the whole run", [](State& s) { Q_EMIT s.search_wanted(); },
     go_menu, "&Find…"},
    {find, mouse, "Return", hit_help},
    {find, mouse, "Shift+Return", hit_help},
    {find, mouse, "Click on a rank's name", "unfold and fold its rows"},
    {find, window, "Ctrl+E", ranks_help, [](State& s) { s.set_all_collapsed(false); }, view_menu, "&Unfold all ranks"},
    {find, window, "Ctrl+Shift+E", ranks_help, [](State& s) { s.set_all_collapsed(true); }, view_menu,
     "&Fold all ranks"},
    {find, mouse, "Click on \"CPU time\"", "unfold and fold a rank's counters"},
    {find, window, "Ctrl+U", counters_help, [](State& s) { s.set_all_counters_unfolded(true); }, view_menu,
     "Unfold all &counters"},
    {find, window, "Ctrl+Shift+U", counters_help, [](State& s) { s.set_all_counters_unfolded(false); }, view_menu,
     "Fold all coun&ters"},
    {find, window, "Ctrl+P", "show and hide the panels", [](State& s) { s.set_panels_shown(!s.panels_shown()); },
     view_menu, "Show or hide &panels"},

    {runs, window, "Ctrl+O", open_help, nullptr, file_menu, "&Open run…", WindowAction::open_directory},
    {runs, window, "Ctrl+Shift+O", open_help, nullptr, file_menu, "Open &file…", WindowAction::open_file},
    {runs, window, "Ctrl+W", "close the run", nullptr, file_menu, "&Close", WindowAction::close},
    {runs, window, "Ctrl+Q", "quit", nullptr, file_menu, "&Quit", WindowAction::quit},
    {runs, window, "?", "show this sheet", nullptr, help_menu, "&Keys and mouse moves", WindowAction::show_keys},
};

}  // namespace action_rows

std::span<const Action> action_table() { return action_rows::table; }

QString keys_text(const Action& action) {
  return action.input == Action::Input::mouse ? action.keys : QString(action.keys).section(' ', 0, 0);
}

const Action* timeline_action(int key) {
  const auto action = std::ranges::find_if(action_table(), [&](const Action& candidate) {
    if (candidate.input != Action::Input::timeline) return false;
    const QStringList keys = QString(candidate.keys).split(' ');
    return std::ranges::any_of(keys, [&](const QString& text) { return QKeySequence(text)[0].key() == key; });
  });
  return action == action_table().end() ? nullptr : &*action;
}

}  // namespace paceline::viewer
