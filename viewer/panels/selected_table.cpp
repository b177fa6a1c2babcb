// SPDX-License-Identifier: Apache-2.0
// Sums of the selected slices by name: of several slices, else of those that begin in the selected range or box.
#include "viewer/panels/slice_sums.h"
#include "viewer/panels/tables.h"

namespace paceline::viewer {
namespace selected_table {

// The time around the longest slice. A row that selected the slice would end the selection that the table shows.
Place place_of(const Run& run, const SliceSum& sum) {
  const double start = double(slices_of(run, sum.longest).start_ns[sum.longest.slice]);
  const double length = double(std::max<std::int64_t>(sum.longest_ns, 1));
  return {.rank = sum.longest.rank, .range = TimeRange{start - length / 4, start + length * 1.25}};
}

TableContent make(const TableQuestion& question, const Ticket& ticket) {
  const Run& run = *question.run;
  const bool part = question.slices.size() < 2 && question.part.range;
  TableContent content;
  if (!part && question.slices.empty()) {
    content.note = "Select slices with Ctrl + click, or a box with Ctrl + drag: this table has their sums.";
    return content;
  }
  const SliceSums sums =
      part ? sum_kinds(run, question.part, ticket) : sum_kinds(run, std::span<const SliceRef>(question.slices));
  const std::size_t shown = std::min(sums.kinds.size(), most_table_rows);
  for (const auto& [id, sum] : std::span(sums.kinds).first(shown)) {
    const analysis::Kind& kind = run.trace.kinds[id];
    QStringList where{shown_name(run.trace.names[kind.domain], 60), shown_name(run.trace.names[kind.category], 60)};
    where.removeAll(QString());
    TableRow row;
    row.place = place_of(run, sum);
    row.cells = {{shown_name(run.trace.names[kind.name])},
                 {where.join(", ")},
                 count_cell(sum.count),
                 duration_cell(sum.total_ns),
                 sum.covered_ns ? duration_cell(*sum.covered_ns) : TableCell{"–"},
                 duration_cell(sum.total_ns / std::int64_t(sum.count)),
                 duration_cell(sum.longest_ns)};
    content.rows.push_back(std::move(row));
  }
  content.note = sum_text(sums.all) + (part ? "; they begin " + question.where() : QString()) +
                 cut_text(shown, sums.kinds.size(), "names with the largest totals");
  return content;
}

}  // namespace selected_table

TableKind selected_table_kind() {
  return {.name = "Sums of the selected slices",
          .columns = {{"Name", "of the slices", false},
                      {"Category", "domain and category", false},
                      {"Count", "selected slices"},
                      {"Total", "their durations added up; a slice inside another one counts in both"},
                      {"Covered", "time in which at least one of them lasts, on whatever rank"},
                      {"Mean", "total ÷ count"},
                      {"Longest", "a click goes to its time"}},
          .sorted_by = 3,
          .of_range = true,
          .of_slices = true,
          .make = selected_table::make};
}

}  // namespace paceline::viewer
