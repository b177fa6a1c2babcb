// SPDX-License-Identifier: Apache-2.0
// The stretches of the critical path: the chain of work and transfers that decided how long the iterations took.
#include <algorithm>
#include <mutex>

#include "analysis/graph/critical_path.h"
#include "viewer/panels/tables.h"

namespace paceline::viewer {
namespace critical_path_table {

using analysis::DependencyKind;
using analysis::PathSegment;

// The path of a run, which does not depend on the selected range.
struct Path {
  analysis::DependencyGraph graph;
  std::optional<analysis::CriticalPath> path;
};
struct Kept {
  std::mutex mutex;
  std::shared_ptr<const Path> path;
};

std::shared_ptr<const Path> path_of(const Run& run, Kept& kept) {
  const std::lock_guard lock(kept.mutex);
  if (!kept.path) {
    auto made = std::make_shared<Path>();
    made->graph = analysis::dependency_graph(*run.index);
    made->path = analysis::critical_path(*run.index, made->graph);
    kept.path = std::move(made);
  }
  return kept.path;
}

QString cause_text(DependencyKind kind) {
  constexpr const char* texts[] = {"transfer of a collective",     "transfer of a message",   "end of a blocking send",
                                   "launch of work on the device", "another stream's work",   "wait for the device",
                                   "hand-over to a helper thread", "wait for a helper thread"};
  return texts[static_cast<std::size_t>(kind)];
}

// Where it ran, or where a transfer arrived.
const analysis::PathPlace& place_of(const PathSegment& segment) { return segment.transfer ? segment.to : segment.from; }

TableRow row_of(const Run& run, const PathSegment& segment) {
  const auto& place = place_of(segment);
  const analysis::Rank& rank = run.trace.ranks[place.rank];
  TableRow row;
  row.place.rank = place.rank;
  const double begin = double(segment.from.time_ns), end = double(segment.to.time_ns);
  const double margin = std::max(0.3 * (end - begin), TimeAxis::shortest_view_ns);
  row.place.range = TimeRange{begin - margin, end + margin};
  const auto name_at = [&](const analysis::PathPlace& at) {
    return at.slice ? slice_title(run, {.rank = at.rank, .track = at.track, .slice = *at.slice})
                    : QString("(outside of all ranges)");
  };
  QString what = segment.transfer ? cause_text(segment.kind) : name_at(segment.from);
  if (!segment.transfer && name_at(segment.to) != what) what += " … " + name_at(segment.to);
  if (place.slice) row.place.slice = SliceRef{.rank = place.rank, .track = place.track, .slice = *place.slice};
  row.cells = {time_cell(run, segment.from.time_ns),
               duration_cell(segment.to.time_ns - segment.from.time_ns),
               {QString::number(rank.rank), double(rank.rank)},
               {shown_name(rank.tracks[place.track].label, 60)},
               {segment.transfer ? "transfer" : "work"},
               {what}};
  return row;
}

TableContent make(const TableQuestion& question, const Ticket& ticket, Kept& kept) {
  const Run& run = *question.run;
  TableContent content;
  if (question.insight->figures.refused()) {
    content.note = "No critical path: events of a main thread were lost. Record the run again without losses.";
    return content;
  }
  const auto path = path_of(run, kept);
  if (!path->path) {
    content.note =
        "No critical path: no iteration was finished by all ranks. Mark iterations with a range named iteration.";
    return content;
  }
  const TimeRange range = question.part.range.value_or(TimeRange{run.begin_ns, run.end_ns + 1});
  auto segments = analysis::path_segments(run.trace, path->graph, *path->path, std::int64_t(range.begin_ns),
                                          std::int64_t(range.end_ns));
  std::erase_if(segments, [&](const PathSegment& segment) { return !question.part.on(place_of(segment).rank); });
  const std::size_t all = segments.size(), shown = std::min(all, most_table_rows);
  std::ranges::partial_sort(segments, segments.begin() + std::ptrdiff_t(shown), std::greater(),
                            [](const PathSegment& one) { return one.to.time_ns - one.from.time_ns; });
  for (std::size_t i = 0; i < shown && !ticket.cancelled(); ++i) content.rows.push_back(row_of(run, segments[i]));
  content.note = QString("%1 of the critical path %2%3")
                     .arg(plural_text(all, "stretch", "stretches"), question.where(), cut_text(shown, all, "longest"));
  return content;
}

}  // namespace critical_path_table

TableKind critical_path_table_kind() {
  const auto kept = std::make_shared<critical_path_table::Kept>();
  return {.name = "Critical path",
          .columns = {{"Start", "of the stretch"},
                      {"Duration", "of the stretch; all stretches together are the time of the iterations"},
                      {"Rank", "where it ran, or where a transfer arrived"},
                      {"Track", "thread or stream", false},
                      {"Kind", "work, or transfer between tracks", false},
                      {"What", "the innermost slices where the stretch begins and ends", false}},
          .sorted_by = 1,
          .of_range = true,
          .make = [kept](const TableQuestion& question, const Ticket& ticket) {
            return critical_path_table::make(question, ticket, *kept);
          }};
}

}  // namespace paceline::viewer
