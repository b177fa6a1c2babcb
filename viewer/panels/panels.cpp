// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/details_panel.h"
#include "viewer/panels/findings_bar.h"
#include "viewer/panels/flame_graph.h"
#include "viewer/panels/heat_map.h"
#include "viewer/panels/histogram.h"
#include "viewer/panels/iteration_ruler.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/notes_panel.h"
#include "viewer/panels/overview.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/report_panel.h"
#include "viewer/panels/scaling_panel.h"
#include "viewer/panels/search.h"
#include "viewer/panels/sql_console.h"
#include "viewer/panels/tables.h"
#include "viewer/panels/what_if_panel.h"

namespace paceline::viewer {
namespace panel_table {

template <class Panel>
QWidget* make(Document& document, ViewState& state) {
  return new Panel(document, state);
}

// A panel that is about one part of the state.
template <class Panel, auto part>
QWidget* make(Document& document, ViewState& state) {
  return new Panel(document, state.*part);
}

template <TableKind (*kind)()>
QWidget* make_table(Document& document, ViewState& state) {
  return new TablePanel(document, state.selection, kind());
}

using Place = PanelKind::Place;
constexpr PanelKind table[] = {
    {Place::title, "", &make<SearchBar>},
    {Place::above, "", &make<FindingsBar>},
    {Place::above, "", &make<Overview, &ViewState::time>},
    {Place::above, "", &make<IterationRuler>},
    {Place::below, "", &make<Legend>},
    {Place::tab, "Phases", &make<BreakdownPanel, &ViewState::selection>},
    {Place::right, "Details", &make<DetailsPanel, &ViewState::selection>},
    {Place::tab, "Ranks", &make_table<ranks_table_kind>},
    {Place::tab, "Collectives", &make_table<collectives_table_kind>},
    {Place::tab, "Names", &make_table<names_table_kind>},
    {Place::tab, "Selected", &make_table<selected_table_kind>},
    {Place::tab, "Heat map", &make<HeatMap, &ViewState::selection>},
    {Place::tab, "Messages", &make_table<messages_table_kind>},
    {Place::tab, "Histogram", &make<Histogram, &ViewState::selection>},
    {Place::tab, "Critical path", &make_table<critical_path_table_kind>},
    {Place::tab, "What-if", &make<WhatIfPanel, &ViewState::selection>},
    {Place::tab, "Flame graph", &make<FlameGraph>},
    {Place::tab, "Report", &make<ReportPanel>},
    {Place::tab, "Scaling", &make<ScalingPanel, &ViewState::selection>},
    {Place::tab, "Hits", &make_table<hits_table_kind>},
    {Place::tab, "Notes", &make<NotesPanel, &ViewState::time>},
    {Place::tab, "SQL", &make<SqlConsole, &ViewState::selection>},
};

}  // namespace panel_table

std::span<const PanelKind> panel_kinds() { return panel_table::table; }

}  // namespace paceline::viewer
