// SPDX-License-Identifier: Apache-2.0
// The tables ranks, tracks, kinds, phases and iterations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/query/row_table.h"
#include "analysis/query/run_data.h"

namespace paceline::analysis {
namespace model_tables {

QueryCell integer(std::integral auto value) { return static_cast<std::int64_t>(value); }
QueryCell text(const std::string& value) { return std::string_view(value); }

constexpr const char* track_kinds[] = {"thread", "mpi", "stream", "nccl", "copy", "counter"};

std::int64_t lost_events(const Rank& rank) {
  std::uint64_t lost = 0;
  for (const auto& [cause, events] : rank.dropped) {
    if (cause != "too_many_names" && cause != "payload_cut") lost += events;  // these events are there
  }
  return static_cast<std::int64_t>(lost);
}

}  // namespace model_tables

std::unique_ptr<QueryTable> ranks_table(RunData& data) {
  using namespace model_tables;
  const auto& ranks = data.trace().ranks;
  const auto of = [&ranks](auto read) { return [&ranks, read](std::size_t row) { return read(ranks[row]); }; };
  auto commands = std::make_shared<std::vector<std::string>>();
  for (const Rank& rank : ranks) commands->push_back(fmt::format("{}", fmt::join(rank.command, " ")));
  std::vector<RowColumn> columns = {
      {{"rank", "INTEGER", "", "number of the rank"},
       of([](const Rank& rank) { return integer(rank.rank); }),
       Lookup::ascending},
      {{"world_size", "INTEGER", "", "ranks of the job"},
       of([](const Rank& rank) { return integer(rank.world_size); })},
      {{"local_rank", "INTEGER", "", "rank on its host"},
       of([](const Rank& rank) { return integer(rank.local_rank); })},
      {{"host", "TEXT", "", "name of the host"}, of([](const Rank& rank) { return text(rank.host); })},
      {{"pid", "INTEGER", "", "process id"}, of([](const Rank& rank) { return integer(rank.pid); })},
      {{"command", "TEXT", "", "command line"}, [commands](std::size_t row) { return text((*commands)[row]); }},
      {{"format", "TEXT", "", "format of its file"}, of([](const Rank& rank) { return text(rank.format); })},
      {{"path", "TEXT", "", "its file"}, of([](const Rank& rank) { return text(rank.path); })},
      {{"start_ns", "INTEGER", "ns", "start of the process, since the run's zero"},
       of([](const Rank& rank) { return integer(rank.start_ns); })},
      {{"end_ns", "INTEGER", "ns", "last event, since the run's zero"},
       of([](const Rank& rank) { return integer(rank.end_ns); })},
      {{"recorded_ns", "INTEGER", "ns", "end - start without the times that were not recorded"},
       of([](const Rank& rank) { return integer(rank.recorded_ns()); })},
      {{"ended", "INTEGER", "", "1 if the process came to its end, 0 if it was killed or still ran"},
       of([](const Rank& rank) { return integer(rank.ended ? 1 : 0); })},
      {{"damaged", "INTEGER", "", "1 if a part of its file could not be read"},
       of([](const Rank& rank) { return integer(rank.damaged ? 1 : 0); })},
      {{"lost_events", "INTEGER", "", "events that were not recorded for want of room"},
       of([](const Rank& rank) { return integer(lost_events(rank)); })},
      {{"clock_error_ns", "REAL", "ns", "bound of its clock's error against the run's clock"},
       of([](const Rank& rank) { return QueryCell(rank.clock_error_ns); })},
  };
  return std::make_unique<RowTable>(
      "ranks", "the processes of the run", std::move(columns), [&ranks] { return ranks.size(); },
      static_cast<double>(ranks.size()));
}

std::unique_ptr<QueryTable> tracks_table(RunData& data) {
  using namespace model_tables;
  const auto tracks = data.tracks();
  const auto of = [tracks](auto read) { return [tracks, read](std::size_t row) { return read(*tracks[row].of); }; };
  const double ranks_share =
      static_cast<double>(data.trace().ranks.size()) / std::max(1.0, static_cast<double>(tracks.size()));
  std::vector<RowColumn> columns = {
      {{"track", "INTEGER", "", "number of the track"},
       [](std::size_t row) { return integer(row); },
       Lookup::ascending},
      {{"rank", "INTEGER", "", "rank of the process"},
       [&data, tracks](std::size_t row) { return integer(data.trace().ranks[tracks[row].rank].rank); },
       Lookup::ascending,
       ranks_share},
      {{"kind", "TEXT", "", "'thread', 'stream', 'nccl', 'copy', 'mpi' or 'counter'"}, of([](const Track& track) {
         return QueryCell(std::string_view(track_kinds[static_cast<std::size_t>(track.kind)]));
       })},
      {{"label", "TEXT", "", "'main thread', 'thread 4711', 'GPU 0 stream 7', …"},
       of([](const Track& track) { return text(track.label); })},
      {{"thread_id", "INTEGER", "", "the system's number of the thread; 0 for other tracks"},
       of([](const Track& track) { return integer(track.thread_id); })},
      {{"main", "INTEGER", "", "1 for the thread whose phases are the rank's"},
       of([](const Track& track) { return integer(track.main ? 1 : 0); })},
      {{"slices", "INTEGER", "", "number of its slices"},
       of([](const Track& track) { return integer(track.slices.size()); })},
      {{"marks", "INTEGER", "", "number of its marks"},
       of([](const Track& track) { return integer(track.marks.size()); })},
      {{"samples", "INTEGER", "", "number of its samples, of a counter"},
       of([](const Track& track) { return integer(track.samples.size()); })},
  };
  return std::make_unique<RowTable>(
      "tracks", "threads, GPU streams, NCCL communicators and counters of the ranks", std::move(columns),
      [tracks] { return tracks.size(); }, static_cast<double>(tracks.size()));
}

std::unique_ptr<QueryTable> kinds_table(RunData& data) {
  using namespace model_tables;
  const Trace& trace = data.trace();
  const auto word = [&trace](NameId Kind::*of) {
    return [&trace, of](std::size_t row) { return text(trace.names[trace.kinds[static_cast<KindId>(row)].*of]); };
  };
  std::vector<RowColumn> columns = {
      {{"kind", "INTEGER", "", "number of the kind"}, [](std::size_t row) { return integer(row); }, Lookup::ascending},
      {{"name", "TEXT", "", "function, range or kernel"}, word(&Kind::name)},
      {{"domain", "TEXT", "", "'mpi', 'cuda', 'nccl', an NVTX domain, or ''"}, word(&Kind::domain)},
      {{"category", "TEXT", "", "'collective', 'kernel', …, an NVTX category, or ''"}, word(&Kind::category)},
      {{"phase", "TEXT", "", "phase that the rules give it, or NULL where it takes that of the slice around it"},
       [&data](std::size_t row) {
         const auto phase = data.index().phases().phase(static_cast<KindId>(row));
         return phase ? QueryCell(phase_name(*phase)) : QueryCell();
       }},
      {{"count", "INTEGER", "", "number of its slices in the run"},
       [&data](std::size_t row) { return integer(data.kind_totals()[row].count); }},
      {{"duration_ns", "INTEGER", "ns", "sum of its slices' durations"},
       [&data](std::size_t row) { return integer(data.kind_totals()[row].duration_ns); }},
  };
  return std::make_unique<RowTable>(
      "kinds", "domain, category and name of slices and marks, each combination once", std::move(columns),
      [&trace] { return trace.kinds.size(); }, static_cast<double>(trace.kinds.size()));
}

std::unique_ptr<QueryTable> phases_table(RunData& data) {
  using namespace model_tables;
  const auto& ranks = data.trace().ranks;
  std::vector<RowColumn> columns = {
      {{"rank", "INTEGER", "", "rank of the process"},
       [&ranks](std::size_t row) { return integer(ranks[row / phase_count].rank); },
       Lookup::ascending,
       1.0 / phase_count},
      {{"phase", "TEXT", "", "'forward', 'backward', 'communication', …: docs/metrics.md defines them"},
       [](std::size_t row) { return QueryCell(phase_name(static_cast<Phase>(row % phase_count))); }},
      {{"duration_ns", "INTEGER", "ns", "time of the rank in this phase; the phases add up to ranks.recorded_ns"},
       [&data](std::size_t row) { return integer(data.times(row / phase_count).phase_ns[row % phase_count]); }},
  };
  return std::make_unique<RowTable>(
      "phases", "each rank's time in each phase", std::move(columns), [&ranks] { return ranks.size() * phase_count; },
      static_cast<double>(ranks.size() * phase_count));
}

std::unique_ptr<QueryTable> iterations_table(RunData& data) {
  using namespace model_tables;
  const auto& ranks = data.trace().ranks;
  const auto of = [&data](auto read) {
    return [&data, read](std::size_t row) { return read(*data.iterations()[row].of); };
  };
  // Not known before the iterations were searched.
  const double count = 1000.0 * static_cast<double>(ranks.size());
  std::vector<RowColumn> columns = {
      {{"rank", "INTEGER", "", "rank of the process"},
       [&data, &ranks](std::size_t row) { return integer(ranks[data.iterations()[row].rank].rank); },
       Lookup::ascending,
       1e-3},
      {{"number", "INTEGER", "", "number of the iteration, equal on all ranks"},
       of([](const Iteration& iteration) { return integer(iteration.number); }),
       Lookup::index,
       1000 / count},
      {{"start_ns", "INTEGER", "ns", "start, since the run's zero"},
       of([](const Iteration& iteration) { return integer(iteration.start_ns); }),
       Lookup::index},
      {{"end_ns", "INTEGER", "ns", "end, since the run's zero"},
       of([](const Iteration& iteration) { return integer(iteration.start_ns + iteration.duration_ns); }),
       Lookup::index},
      {{"duration_ns", "INTEGER", "ns", "end - start"},
       of([](const Iteration& iteration) { return integer(iteration.duration_ns); })},
      {{"finished", "INTEGER", "", "0 if the process ended inside, or a part was lost or not recorded"},
       of([](const Iteration& iteration) { return integer(iteration.finished ? 1 : 0); })},
  };
  static const auto names = [] {
    std::array<std::pair<std::string, std::string>, phase_count> made;  // of columns, and what they mean
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      const std::string_view name = phase_name(static_cast<Phase>(phase));
      made[phase] = {fmt::format("{}_ns", name), fmt::format("time of the iteration in the phase {}", name)};
    }
    return made;
  }();
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    const auto& [name, meaning] = names[phase];
    columns.push_back({{name.c_str(), "INTEGER", "ns", meaning.c_str()},
                       of([phase](const Iteration& iteration) { return integer(iteration.phase_ns[phase]); })});
  }
  return std::make_unique<RowTable>(
      "iterations", "the training steps of each rank", std::move(columns), [&data] { return data.iterations().size(); },
      count);
}

}  // namespace paceline::analysis
