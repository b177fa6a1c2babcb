#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/details_panel.h"
#include "viewer/panels/findings_bar.h"
#include "viewer/panels/iteration_ruler.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/overview.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/search.h"

namespace paceline::viewer {
namespace panel_table {

template <class Panel>
QWidget* make(Document& document, ViewState& state) {
  return new Panel(document, state);
}

using Place = PanelKind::Place;
constexpr PanelKind table[] = {
    {Place::title, 0, &make<SearchBar>},       {Place::above, 0, &make<FindingsBar>},
    {Place::above, 0, &make<Overview>},        {Place::above, 0, &make<IterationRuler>},
    {Place::below, 0, &make<Legend>},          {Place::bottom, 1030, &make<BreakdownPanel>},
    {Place::bottom, 570, &make<DetailsPanel>},
};

}  // namespace panel_table

std::span<const PanelKind> panel_kinds() { return panel_table::table; }

}  // namespace paceline::viewer
