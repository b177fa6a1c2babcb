// SPDX-License-Identifier: Apache-2.0
// The row of NCCL's own outputs in the table of readers: facts of the ranks, without events.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/clocks/alignment.h"
#include "analysis/importers/nccl/facts.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "profiler/format/input_file.h"

namespace paceline::analysis {
namespace nccl_outputs {

constexpr std::size_t largest = std::size_t{1} << 30;

std::string text_of(const std::filesystem::path& path, std::size_t most) {
  const format::InputFile file(path);
  std::string text(std::min<std::uint64_t>(file.size(), most), '\0');
  text.resize(file.read(0, text.data(), text.size()));
  return text;
}

bool recognises(const TraceFile& file) {
  try {
    const std::string begin = text_of(file.path, 1 << 20);
    return nccl::is_inspector(begin) || nccl::is_ras(begin) || nccl::is_debug_log(begin);
  } catch (const Error&) {
    return false;
  }
}

nccl::Output read_file(const TraceFile& file) {
  const std::string text = text_of(file.path, largest);
  try {
    if (nccl::is_inspector(text)) return nccl::read_inspector(text);
    return nccl::is_ras(text) ? nccl::read_ras(text) : nccl::read_debug_log(text);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file.name, error.what()));
  }
}

// Several outputs may tell of one rank.
Trace read(std::span<const TraceFile> files, const Progress& progress) {
  ProgressCounter counter(progress, files.size());
  std::map<int, Rank> ranks;
  std::vector<std::string> notes;
  int world_size = 1;
  for (const TraceFile& file : files) {
    try {
      nccl::Output output = read_file(file);
      for (nccl::RankFacts& found : output.ranks) {
        Rank& rank = ranks[found.rank];
        rank.rank = found.rank;
        world_size = std::max({world_size, found.world_size, found.rank + 1});
        if (rank.host.empty()) rank.host = found.host;
        if (rank.pid <= 0) rank.pid = found.pid;
        if (rank.path.empty()) rank.path = file.name;
        for (auto& [key, value] : found.facts) rank.facts.try_emplace(key, std::move(value));
      }
      for (const std::string& note : output.notes) notes.push_back(fmt::format("{}: {}", file.name, note));
    } catch (const Error& error) {
      if (counter.stopped()) throw;
      notes.emplace_back(error.what());
    }
    counter.add(1);
  }
  if (ranks.empty()) throw Error(notes.front());
  TraceBuilder run;
  for (auto& [number, rank] : ranks) {
    rank.format = "nccl";
    rank.world_size = world_size;
    rank.clock_source = "none";
    rank.clock_error_ns = unset_utc_error_ns;
    run.add_rank(std::move(rank));
  }
  Trace trace = run.finish();
  trace.notes.insert(trace.notes.begin(), notes.begin(), notes.end());
  return trace;
}

}  // namespace nccl_outputs

const TraceReader nccl_reader{"nccl", nccl_outputs::recognises, nccl_outputs::read, true};

}  // namespace paceline::analysis
