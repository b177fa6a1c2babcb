// SPDX-License-Identifier: Apache-2.0
// One row for each collective: who arrived last, how long the others waited, and how long the transfer took.
#include <algorithm>

#include "viewer/panels/tables.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace collectives_table {

using analysis::Collective;

std::int64_t waited_ns(const Collective& collective) {
  std::int64_t sum = 0;
  if (!collective.timed) return sum;
  for (const auto& call : collective.calls) sum += collective.wait_ns(call);
  return sum;
}

QString communicator_of(const Collective& collective, const std::vector<analysis::CollectiveCalls>& calls) {
  for (const auto& membership : calls[collective.calls.front().rank].communicators) {
    if (membership.communicator == collective.communicator) return shown_name(membership.text, 60);
  }
  return {};
}

TableRow row_of(const TableQuestion& question, const Collective& collective, std::int64_t waited,
                const std::vector<analysis::CollectiveCalls>& calls, const std::string& operation) {
  const Run& run = *question.run;
  std::int64_t first = collective.calls.front().start_ns, end = collective.calls.front().end_ns, longest = 0;
  const analysis::MemberCall* last = &collective.calls.front();
  for (const auto& call : collective.calls) {
    first = std::min(first, call.start_ns);
    end = std::max(end, call.end_ns);
    if (collective.timed) longest = std::max(longest, collective.wait_ns(call));
    if (collective.timed && call.rank == collective.last_rank) last = &call;
  }
  const analysis::CollectiveCall& call = calls[last->rank].calls[last->call];
  const double margin = 0.3 * double(end - first);
  TableRow row;
  row.place = {.rank = last->rank,
               .range = TimeRange{double(first) - margin, double(end) + margin},
               .slice = SliceRef{.rank = last->rank, .track = call.track, .slice = call.slice}};
  const double seconds = 1e-9 * double(collective.transfer_ns);
  const double bandwidth =
      seconds > 0 ? double(collective.bytes) / seconds * analysis::bus_factor(operation, collective.members) : 0;
  const TableCell none{"–"};
  row.cells = {
      {shown_name(operation, 60)},
      {communicator_of(collective, calls)},
      count_cell(collective.members),
      {count_text(collective.bytes) + " B", double(collective.bytes), "B"},
      time_cell(run, first),
      collective.timed ? duration_cell(waited) : none,
      collective.timed ? duration_cell(longest) : none,
      collective.timed ? duration_cell(collective.transfer_ns) : none,
      collective.timed ? TableCell{QString::number(run.trace.ranks[last->rank].rank), double(last->rank)} : none,
      bandwidth > 0 ? TableCell{QString("%1 GB/s").arg(bandwidth / 1e9, 0, 'f', 2), bandwidth, "B/s"} : none};
  return row;
}

TableContent make(const TableQuestion& question, const Ticket& ticket) {
  const auto& calls = question.run->index->calls();
  const analysis::Collectives& found = question.run->index->collectives();
  std::vector<std::pair<std::int64_t, std::size_t>> by_waiting;  // and its index
  for (std::size_t i = 0; i < found.matched.size(); ++i) {
    const Collective& one = found.matched[i];
    const auto concerns = [&](const analysis::MemberCall& call) { return question.part.on(call.rank); };
    if (question.contains(one.timed ? one.last_start_ns : one.calls.front().start_ns) &&
        std::ranges::any_of(one.calls, concerns)) {
      by_waiting.emplace_back(-waited_ns(one), i);
    }
  }
  const std::size_t all = by_waiting.size(), shown = std::min(all, most_table_rows);
  std::ranges::partial_sort(by_waiting, by_waiting.begin() + std::ptrdiff_t(shown));
  TableContent content;
  for (std::size_t i = 0; i < shown && !ticket.cancelled(); ++i) {
    const Collective& one = found.matched[by_waiting[i].second];
    content.rows.push_back(row_of(question, one, -by_waiting[i].first, calls, found.operations[one.operation]));
  }
  content.note = plural_text(all, "collective ", "collectives ") + question.where() +
                 cut_text(shown, all, "with the longest waits");
  if (found.unmatched_calls > 0 && !question.part.range) {
    content.note +=
        QString("; %1 without a partner in the trace").arg(plural_text(found.unmatched_calls, "call", "calls"));
  }
  return content;
}

}  // namespace collectives_table

TableKind collectives_table_kind() {
  return {.name = "Collectives",
          .columns = {{"Operation", "the MPI or NCCL call", false},
                      {"Communicator", "the group of ranks", false},
                      {"Ranks", "members of the communicator"},
                      {"Size", "the largest that a rank gave"},
                      {"Start", "when the first rank called it"},
                      {"Waited", "time that the ranks waited for the last one, added up"},
                      {"Longest wait", "of one rank"},
                      {"Transfer", "from the last arrival to the last end"},
                      {"Last rank", "the one that the others waited for"},
                      {"Bus bandwidth", "size ÷ transfer × the factor of nccl-tests"}},
          .sorted_by = 5,
          .of_range = true,
          .make = collectives_table::make};
}

}  // namespace paceline::viewer
