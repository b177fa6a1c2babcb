// SPDX-License-Identifier: Apache-2.0
// The table thread_states.
#include <cstdint>
#include <memory>
#include <vector>

#include "analysis/query/row_table.h"
#include "analysis/query/run_data.h"
#include "analysis/trace/state_stretches.h"

namespace paceline::analysis {
namespace thread_state_tables {

struct Row {
  std::int64_t start_ns = 0, duration_ns = 0;
  std::uint32_t track = 0;
  ThreadState state = ThreadState::running;
};

// The rows of all threads, made when a statement first reads the table.
std::vector<Row> rows_of(std::span<const RunData::TrackPlace> tracks) {
  std::vector<Row> rows;
  for (std::uint32_t track = 0; track < tracks.size(); ++track) {
    each_state(tracks[track].of->states, [&](ThreadState state, std::int64_t start_ns, std::int64_t duration_ns) {
      rows.push_back({start_ns, duration_ns, track, state});
    });
  }
  return rows;
}

}  // namespace thread_state_tables

std::unique_ptr<QueryTable> thread_states_table(RunData& data) {
  using namespace thread_state_tables;
  const auto tracks = data.tracks();
  double entries = 0, with_states = 1;
  for (const RunData::TrackPlace& place : tracks) {
    entries += static_cast<double>(place.of->states.size());
    with_states += place.of->states.empty() ? 0 : 1;
  }
  auto rows = std::make_shared<std::vector<Row>>();
  auto made = std::make_shared<bool>(false);
  const auto track_of = [rows, tracks](std::size_t row) -> const Track& { return *tracks[(*rows)[row].track].of; };
  const auto integer = [](auto value) { return QueryCell(static_cast<std::int64_t>(value)); };
  std::vector<RowColumn> columns = {
      {{"rank", "INTEGER", "", "rank of the process"},
       [=, &data](std::size_t row) { return integer(data.trace().ranks[tracks[(*rows)[row].track].rank].rank); },
       Lookup::ascending,
       static_cast<double>(data.trace().ranks.size()) / std::max(1.0, entries)},
      {{"track", "INTEGER", "", "number of the thread's track (tracks.track)"},
       [=](std::size_t row) { return integer((*rows)[row].track); },
       Lookup::ascending,
       with_states / std::max(1.0, entries)},
      {{"thread", "INTEGER", "", "the system's number of the thread"},
       [=](std::size_t row) { return integer(track_of(row).thread_id); }},
      {{"start_ns", "INTEGER", "ns", "start, since the run's zero"},
       [=](std::size_t row) { return integer((*rows)[row].start_ns); }},
      {{"duration_ns", "INTEGER", "ns", "how long the thread did this"},
       [=](std::size_t row) { return integer((*rows)[row].duration_ns); }},
      {{"state", "TEXT", "", "'running', 'waiting' for a CPU, or 'blocked'"},
       [=](std::size_t row) { return QueryCell(thread_state_name((*rows)[row].state)); }},
      {{"exact", "INTEGER", "", "1 if each switch was recorded; 0 if only durations are known, not their places"},
       [=](std::size_t row) { return integer(track_of(row).states.exact ? 1 : 0); }},
  };
  return std::make_unique<RowTable>(
      "thread_states", "what the scheduler did with the threads: running, waiting for a CPU, or blocked",
      std::move(columns),
      [=] {
        if (!*made) *rows = rows_of(tracks);
        *made = true;
        return rows->size();
      },
      entries);
}

}  // namespace paceline::analysis
