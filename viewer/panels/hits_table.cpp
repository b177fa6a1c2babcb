// SPDX-License-Identifier: Apache-2.0
// The slices and marks that the last search found.
#include "viewer/panels/tables.h"

namespace paceline::viewer {
namespace hits_table {

TableContent make(const TableQuestion& question, const Ticket&) {
  TableContent content;
  if (!question.hits) {
    content.note = "Search for a name first (Ctrl+F): this table lists the hits.";
    return content;
  }
  const Run& run = *question.run;
  const std::size_t all = question.hits->size(), shown = std::min(all, most_table_rows);
  for (const SliceRef& hit : std::span(*question.hits).first(shown)) {
    const analysis::Slices& slices = slices_of(run, hit);
    TableRow row;
    row.place.slice = hit;
    row.cells = {time_cell(run, slices.start_ns[hit.slice]),
                 duration_cell(slices.duration_ns[hit.slice]),
                 {QString::number(run.trace.ranks[hit.rank].rank), double(run.trace.ranks[hit.rank].rank)},
                 {shown_name(track_of(run, hit).label, 60)},
                 {slice_title(run, hit)}};
    content.rows.push_back(std::move(row));
  }
  content.note = plural_text(all, "hit", "hits") + cut_text(shown, all, "earliest");
  return content;
}

}  // namespace hits_table

TableKind hits_table_kind() {
  return {.name = "Hits of the search",
          .columns = {{"Start", "of the slice"},
                      {"Duration", "of the slice"},
                      {"Rank", "number of the rank"},
                      {"Track", "thread or stream", false},
                      {"Name", "of the slice", false}},
          .sorted_by = 1,
          .of_hits = true,
          .make = hits_table::make};
}

}  // namespace paceline::viewer
