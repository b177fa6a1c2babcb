// SPDX-License-Identifier: Apache-2.0
// One row for each rank: its iterations, how long it waited, and how long the others waited for it.
#include "viewer/panels/tables.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace ranks_table {

const TableCell unknown{"–"};

TableCell hidden_cell(const analysis::RankSummary& rank) {
  if (!rank.overlap || rank.overlap->communication_ns == 0) return unknown;
  const double share = double(rank.overlap->hidden_ns) / double(rank.overlap->communication_ns);
  return {QString("%1 (%2)").arg(duration_text(rank.overlap->hidden_ns), share_text(share)),
          double(rank.overlap->hidden_ns), "ns"};
}

TableContent make(const TableQuestion& question, const Ticket&) {
  const analysis::RunAnalysis& figures = question.insight->figures;
  const bool timed = analysis::any_timed(figures.collectives);  // else nobody knows who waited
  TableContent content;
  for (std::size_t i = 0; i < figures.per_rank.size(); ++i) {
    const analysis::RankSummary& rank = figures.per_rank[i];
    const analysis::IterationSummary iterations = analysis::summarize(rank.iterations);
    const analysis::RankWaits& waits = figures.waits[i];
    std::uint64_t lost = 0;
    for (const auto& [cause, count] : rank.dropped) lost += count;
    TableRow row;
    row.place.rank = i;
    row.cells = {{QString::number(rank.rank), double(rank.rank)},
                 {QString::fromStdString(rank.host)},
                 duration_cell(rank.wall_ns),
                 count_cell(iterations.count),
                 duration_cell(iterations.median_ns),
                 duration_cell(iterations.p95_ns),
                 timed ? duration_cell(waits.waited_ns) : unknown,
                 timed ? duration_cell(waits.caused_ns) : unknown,
                 hidden_cell(rank),
                 timed ? count_cell(waits.last_count) : unknown,
                 count_cell(lost)};
    content.rows.push_back(std::move(row));
  }
  content.note = plural_text(content.rows.size(), "rank", "ranks") + " in the whole run";
  return content;
}

}  // namespace ranks_table

TableKind ranks_table_kind() {
  return {.name = "Ranks",
          .columns = {{"Rank", "number of the rank"},
                      {"Host", "its machine", false},
                      {"Wall time", "recorded time from its start to its end"},
                      {"Iterations", "those that it finished"},
                      {"Median", "of its iterations"},
                      {"p95", "95th percentile of its iterations"},
                      {"Waited", "time that it waited in collectives for the last rank"},
                      {"Made others wait", "time that all others waited in collectives for this rank, added up"},
                      {"Hidden", "communication that its own computation hid, and its share of all its communication"},
                      {"Last in", "collectives in which it arrived last"},
                      {"Events lost", "events that were not recorded"}},
          .sorted_by = 7,
          .of_range = false,
          .make = ranks_table::make};
}

}  // namespace paceline::viewer
