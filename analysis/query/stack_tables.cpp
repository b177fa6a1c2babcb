// SPDX-License-Identifier: Apache-2.0
// The tables samples and frames: what threads were doing when their stacks were sampled.
#include <algorithm>

#include "analysis/query/row_table.h"
#include "analysis/query/run_data.h"
#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {
namespace stack_tables {

QueryCell integer(std::integral auto value) { return static_cast<std::int64_t>(value); }

struct SampleRow {
  TrackNumber track = 0;
  std::uint32_t index = 0;
};

struct FrameRow {
  StackId stack = 0;
  FrameId frame = 0;
  std::uint32_t depth = 0;
};

// The number of the rank's iteration in which the time lies, or nothing.
QueryCell iteration_at(RunData& data, std::uint32_t rank, std::int64_t time_ns) {
  const auto& iterations = data.iterations();
  const auto starts_after = [&](std::pair<std::uint32_t, std::int64_t> at, const IterationEntry& entry) {
    return at < std::pair(entry.rank, entry.of->start_ns);
  };
  const auto after = std::upper_bound(iterations.begin(), iterations.end(), std::pair(rank, time_ns), starts_after);
  if (after == iterations.begin()) return {};
  const IterationEntry& entry = *(after - 1);
  if (entry.rank != rank || time_ns >= entry.of->start_ns + entry.of->duration_ns) return {};
  return integer(entry.of->number);
}

// The innermost function of the stack and, where that is a system call, the one that called it.
struct Innermost {
  NameId call = 0, call_file = 0, function = 0;
};
Innermost innermost_of(const Trace& trace, StackId stack) {
  Innermost found;
  if (stack == 0) return found;
  const Frame& frame = trace.stacks[trace.stacks.innermost(stack)];
  if (system_call(trace.names[frame.function]).empty()) return {.function = frame.function};
  found = {.call = frame.function, .call_file = frame.file};
  if (const StackId caller = trace.stacks.caller(stack); caller != 0) {
    found.function = trace.stacks[trace.stacks.innermost(caller)].function;
  }
  return found;
}

std::vector<FrameRow> frame_rows(const Trace& trace) {
  std::vector<bool> sampled(trace.stacks.size());
  for (const Rank& rank : trace.ranks) {
    for (const Track& track : rank.tracks) {
      for (const StackId stack : track.stacks.stack) sampled[stack] = true;
    }
  }
  std::vector<FrameRow> rows;
  for (StackId stack = 1; stack < sampled.size(); ++stack) {
    if (!sampled[stack]) continue;
    std::uint32_t depth = 0;
    for (const FrameId frame : frames_of(trace.stacks, stack)) rows.push_back({stack, frame, depth++});
  }
  return rows;
}

}  // namespace stack_tables

std::unique_ptr<QueryTable> stack_samples_table(RunData& data) {
  using namespace stack_tables;
  const Trace& trace = data.trace();
  const auto rows = std::make_shared<std::vector<SampleRow>>();
  for (TrackNumber track = 0; track < data.tracks().size(); ++track) {
    const std::size_t samples = data.tracks()[track].of->stacks.size();
    for (std::uint32_t i = 0; i < samples; ++i) rows->push_back({track, i});
  }
  const auto of = [&data, rows](auto read) {
    return [&data, rows, read](std::size_t row) {
      const SampleRow& at = (*rows)[row];
      return read(data.tracks()[at.track], at.index);
    };
  };
  using Place = RunData::TrackPlace;
  const auto name = [&trace, of](NameId Innermost::*which) {
    return of([&trace, which](const Place& place, std::uint32_t i) {
      const NameId id = innermost_of(trace, place.of->stacks.stack[i]).*which;
      if (id == 0) return QueryCell();
      const std::string_view text = trace.names[id];
      return QueryCell(which == &Innermost::call ? system_call(text) : text);
    });
  };
  std::vector<RowColumn> columns = {
      {{"rank", "INTEGER", "", "rank of the process"},
       of([&trace](const Place& place, std::uint32_t) { return integer(trace.ranks[place.rank].rank); }),
       Lookup::ascending,
       0.1},
      {{"track", "INTEGER", "", "number of the thread's track (tracks.track)"},
       [rows](std::size_t row) { return integer((*rows)[row].track); },
       Lookup::ascending,
       0.1},
      {{"time_ns", "INTEGER", "ns", "time of the sample, since the run's zero"},
       of([](const Place& place, std::uint32_t i) { return integer(place.of->stacks.time_ns[i]); }),
       Lookup::index},
      {{"period_ns", "INTEGER", "ns", "time that a sample of the thread stands for; 0 if that is not known"},
       of([](const Place& place, std::uint32_t) { return integer(place.of->stacks.period_ns); })},
      {{"iteration", "INTEGER", "", "number of the iteration in which it lies, or NULL"},
       of([&data](const Place& place, std::uint32_t i) {
         return iteration_at(data, place.rank, place.of->stacks.time_ns[i]);
       })},
      {{"stack", "INTEGER", "", "number of the stack (frames.stack); 0: no function is known"},
       of([](const Place& place, std::uint32_t i) { return integer(place.of->stacks.stack[i]); }),
       Lookup::index},
      {{"function", "TEXT", "", "innermost function, or NULL"}, name(&Innermost::function)},
      {{"call", "TEXT", "", "system call in which the thread was blocked; NULL while it ran or waited for a CPU"},
       name(&Innermost::call)},
      {{"call_file", "TEXT", "", "path that the call concerns, 'socket', 'pipe', or NULL"},
       name(&Innermost::call_file)},
  };
  return std::make_unique<RowTable>(
      "samples", "samples of the stacks of threads", std::move(columns), [rows] { return rows->size(); },
      static_cast<double>(rows->size()));
}

std::unique_ptr<QueryTable> frames_table(RunData& data) {
  using namespace stack_tables;
  const Trace& trace = data.trace();
  const auto rows = std::make_shared<std::vector<FrameRow>>();
  const auto name = [&trace, rows](NameId Frame::*which) {
    return [&trace, rows, which](std::size_t row) {
      const NameId id = trace.stacks[(*rows)[row].frame].*which;
      return id == 0 ? QueryCell() : QueryCell(std::string_view(trace.names[id]));
    };
  };
  std::vector<RowColumn> columns = {
      {{"stack", "INTEGER", "", "number of the stack"},
       [rows](std::size_t row) { return integer((*rows)[row].stack); },
       Lookup::ascending,
       0.05},
      {{"depth", "INTEGER", "", "0 for the outermost function"},
       [rows](std::size_t row) { return integer((*rows)[row].depth); }},
      {{"function", "TEXT", "", "name of the function; a system call in brackets"}, name(&Frame::function)},
      {{"file", "TEXT", "", "source file, library, or file of the system call; NULL if not known"}, name(&Frame::file)},
      {{"line", "INTEGER", "", "line that was executed, or NULL"},
       [&trace, rows](std::size_t row) {
         const std::uint32_t line = trace.stacks[(*rows)[row].frame].line;
         return line == 0 ? QueryCell() : integer(line);
       }},
  };
  return std::make_unique<RowTable>(
      "frames", "the functions of each stack that was sampled", std::move(columns),
      [&trace, rows] {
        if (rows->empty()) *rows = frame_rows(trace);
        return rows->size();
      },
      20 * static_cast<double>(trace.stacks.size()));
}

}  // namespace paceline::analysis
