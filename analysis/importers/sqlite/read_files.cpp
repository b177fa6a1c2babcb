// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/sqlite/read_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {

Trace read_databases(
    std::span<const TraceFile> files, const Progress& progress, TraceBuilder& run, std::string_view without_events,
    const std::function<std::vector<std::string>(std::size_t file, Database& database, const ShareDone& done)>& read) {
  std::vector<std::vector<std::string>> notes(files.size());
  std::vector<std::string> failures(files.size());
  constexpr std::uint64_t steps = 100;
  ProgressCounter counter(progress, files.size() * steps);
  parallel_for(files.size(), [&](std::size_t i) {
    std::uint64_t reported = 0;
    try {
      Database database(files[i].path, files[i].name);
      notes[i] = read(i, database, [&](double share) {
        const auto now = static_cast<std::uint64_t>(share * steps);
        counter.add(now - reported);
        reported = now;
      });
    } catch (const Error& error) {
      if (counter.stopped()) throw;
      failures[i] = error.what();
    }
  });
  Trace trace = run.finish();
  std::erase_if(trace.ranks, [](const Rank& rank) { return rank.tracks.empty(); });
  std::erase(failures, "");
  if (trace.ranks.empty()) {
    throw Error(!failures.empty() ? failures.front() : fmt::format("{}: {}", files.front().name, without_events));
  }
  notes.push_back(std::exchange(trace.notes, std::move(failures)));
  for (const std::vector<std::string>& of_file : notes) {
    trace.notes.insert(trace.notes.end(), of_file.begin(), of_file.end());
  }
  return trace;
}

void run_parts(std::span<const std::function<void()>> parts, const ShareDone& done) {
  std::size_t finished = 0;
  for (const auto& part : parts) {
    part();
    done(static_cast<double>(++finished) / static_cast<double>(parts.size()));
  }
}

void note_damage(const Database& database, Rank& rank) {
  rank.damaged = !database.damage().empty();
  rank.damage = fmt::format("{}", fmt::join(database.damage(), "; "));
}

}  // namespace paceline::analysis
