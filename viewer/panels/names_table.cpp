// SPDX-License-Identifier: Apache-2.0
// The slices of each name that begin in the selected range, or in the whole run: how many, how long, and the longest.
#include <algorithm>

#include "analysis/statistics/duration_sketch.h"
#include "analysis/statistics/sum.h"
#include "viewer/panels/tables.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace names_table {

struct Sum {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, longest_ns = -1;
  SliceRef longest;
};

TableContent make(const TableQuestion& question, const Ticket& ticket) {
  const analysis::Trace& trace = question.run->trace;
  std::vector<Sum> sums(trace.kinds.size());
  each_slice_in(*question.run, question.part, ticket, [&](const SliceRef& ref, analysis::KindId kind, std::int64_t ns) {
    Sum& sum = sums[kind];
    ++sum.count;
    analysis::add_to_sum(sum.total_ns, ns);
    if (ns > sum.longest_ns) sum.longest_ns = ns, sum.longest = ref;
  });
  std::vector<std::size_t> kinds;
  for (std::size_t kind = 0; kind < sums.size(); ++kind) {
    if (sums[kind].count > 0) kinds.push_back(kind);
  }
  const std::size_t all = kinds.size(), shown = std::min(all, most_table_rows);
  std::ranges::partial_sort(kinds, kinds.begin() + std::ptrdiff_t(shown), std::greater(),
                            [&](std::size_t kind) { return sums[kind].total_ns; });
  // Quantiles only of the names that are shown: a run may have millions of names.
  std::vector<std::uint32_t> sketch_of(sums.size(), ~0u);
  for (std::size_t i = 0; i < shown; ++i) sketch_of[kinds[i]] = std::uint32_t(i);
  std::vector<analysis::DurationSketch> sketches(shown);
  each_slice_in(*question.run, question.part, ticket, [&](const SliceRef&, analysis::KindId kind, std::int64_t ns) {
    if (sketch_of[kind] != ~0u) sketches[sketch_of[kind]].add(ns);
  });
  const double whole =
      question.part.range ? question.part.range->length() : question.run->end_ns - question.run->begin_ns;
  TableContent content;
  for (std::size_t i = 0; i < shown && !ticket.cancelled(); ++i) {
    const Sum& sum = sums[kinds[i]];
    const analysis::Kind& kind = trace.kinds[kinds[i]];
    const double share =
        double(sum.total_ns) /
        (whole * double(question.part.ranks.empty() ? trace.ranks.size() : question.part.ranks.size()));
    QStringList where{shown_name(trace.names[kind.domain], 60), shown_name(trace.names[kind.category], 60)};
    where.removeAll(QString());
    TableRow row;
    row.place.slice = sum.longest;
    row.cells = {{shown_name(trace.names[kind.name])},
                 {where.join(", ")},
                 count_cell(sum.count),
                 duration_cell(sum.total_ns),
                 {share_text(share), share},
                 duration_cell(std::int64_t(sketches[i].quantile_ns(0.5))),
                 duration_cell(std::int64_t(sketches[i].quantile_ns(0.95))),
                 duration_cell(sum.longest_ns)};
    content.rows.push_back(std::move(row));
  }
  content.note =
      plural_text(all, "name ", "names ") + question.where() + cut_text(shown, all, "with the largest totals");
  return content;
}

}  // namespace names_table

TableKind names_table_kind() {
  return {.name = "Statistics by name",
          .columns = {{"Name", "of the slices", false},
                      {"Category", "domain and category", false},
                      {"Count", "slices that begin in the range"},
                      {"Total", "their time on all ranks and tracks; a slice inside another one counts in both"},
                      {"Share", "total ÷ (time × ranks)"},
                      {"Median", "of their durations"},
                      {"p95", "95th percentile of their durations"},
                      {"Longest", "a click goes to it"}},
          .sorted_by = 3,
          .filtered = true,
          .of_range = true,
          .make = names_table::make};
}

}  // namespace paceline::viewer
