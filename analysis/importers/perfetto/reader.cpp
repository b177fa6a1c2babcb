// SPDX-License-Identifier: Apache-2.0
// The row of Perfetto's protobuf files in the table of readers.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "analysis/clocks/trace_alignment.h"
#include "analysis/importers/main_thread.h"
#include "analysis/importers/perfetto/file_import.h"
#include "analysis/importers/perfetto/manifest.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace perfetto_files {

using perfetto::FileImport;
using perfetto::Losses;

std::string begin_of(const TraceFile& file, std::uint64_t most) {
  const format::InputFile input(file.path);
  std::string bytes(std::min(input.size(), most), '\0');
  bytes.resize(input.read(0, bytes.data(), bytes.size()));
  return bytes;
}

bool recognises(const TraceFile& file) {
  try {
    const std::string bytes = begin_of(file, 1 << 20);
    return perfetto::begins_with_packets(bytes) || perfetto::is_manifest(bytes);
  } catch (const Error&) {
    return false;
  }
}

// Takes a manifest out of the files. Returns what it says of the others' clocks.
std::map<std::string, std::int64_t> take_manifest(std::vector<TraceFile>& files, std::vector<std::string>& notes) {
  const auto found =
      std::ranges::find_if(files, [](const TraceFile& file) { return perfetto::is_manifest(begin_of(file, 100)); });
  if (found == files.end()) return {};
  const TraceFile manifest = *found;
  files.erase(found);
  if (files.empty()) throw Error(fmt::format("{}: give it together with the traces that it names", manifest.name));
  std::map<std::string, std::int64_t> offsets;
  try {
    offsets = perfetto::clock_offsets(begin_of(manifest, 1 << 24), files);
  } catch (const Error& error) {
    notes.push_back(fmt::format("{}: {}", manifest.name, error.what()));
    return {};
  }
  if (offsets.empty()) {
    notes.push_back(
        fmt::format("{}: it was not used, because it does not relate the clocks of all traces by the time "
                    "since boot",
                    manifest.name));
  }
  return offsets;
}

struct Opened {
  std::vector<RankBuilder*> ranks;
  std::vector<std::optional<std::int64_t>> starts;
  std::optional<std::int64_t> utc_of_zero_ns;
  std::string failure;
  std::vector<std::string> notes;
};

void note_losses(const std::string& file, const FileImport& import, std::vector<std::string>& notes) {
  const Losses& losses = import.losses();
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) notes.push_back(fmt::format("{}: {} {}", file, count, what));
  };
  note(losses.stateless, "events were left out: their names were lost before the file");
  note(losses.beginless, "ends of slices were left out: they have no begin");
  note(losses.backward, "slices end before they begin: they were read as 0 ns");
  note(losses.unplaced, "events were left out: Chrome's older events and states have no place on a track");
  note(losses.arguments, "arguments were left out: their events have more than 100");
  note(losses.kernel, "packets of the system's kernel (ftrace) were left out");
  note(losses.samples, "samples of stacks were left out");
  note(losses.compressed, "compressed packets were left out: record without compression");
  for (const auto& [clock, count] : losses.unrelated_clocks) {
    notes.push_back(
        fmt::format("{}: {} times are on the clock {}, which no clock snapshot relates to the others: they were "
                    "taken as they are",
                    file, count, clock));
  }
  if (import.joined_processes() > 0) {
    notes.push_back(fmt::format(
        "{}: its {} processes were read as one rank: --processes ranks makes each one a rank, and so do names "
        "such as \"rank 0\"",
        file, import.joined_processes()));
  }
  note(import.unnumbered(),
       "collectives cannot be matched with other ranks': the file has neither their numbers nor "
       "iterations (ProfilerStep) to count them in");
}

void read_file(const TraceFile& file, Opened& opened, const FileImport::AddRank& add_rank, ProgressCounter& progress) {
  const FileImport import(file, add_rank, progress);
  const Losses& losses = import.losses();
  Rank& first =
      (*std::ranges::find_if(opened.ranks, [](RankBuilder* rank) { return !rank->info().format.empty(); }))->info();
  if (losses.damaged > 0) first.dropped["damage"] = losses.damaged;
  if (losses.damaged > 0 || !losses.end.empty()) {
    first.damaged = true;
    first.damage = losses.damaged > 0 ? fmt::format("{} events could not be read", losses.damaged) : "";
    if (!losses.end.empty()) first.damage += (first.damage.empty() ? "" : "; ") + losses.end;
    first.ended = losses.end.empty();
  }
  note_losses(file.name, import, opened.notes);
  opened.starts = import.starts();
  opened.utc_of_zero_ns = import.utc_of_zero_ns();
}

// Moves the times of ranks on one clock so that the earliest is 0.
void begin_at_zero(std::vector<Rank*>& ranks, bool only_clock) {
  std::int64_t zero_ns = std::numeric_limits<std::int64_t>::max();
  for (const Rank* rank : ranks) zero_ns = std::min(zero_ns, rank->start_ns);
  for (Rank* rank : ranks) {
    shift_rank(*rank, -zero_ns);
    if (only_clock && ranks.size() > 1) rank->clock_source = "file";
  }
}

Trace read(std::span<const TraceFile> given, const Progress& progress) {
  std::vector<TraceFile> files(given.begin(), given.end());
  std::vector<std::string> notes;
  const std::map<std::string, std::int64_t> offsets = take_manifest(files, notes);
  std::uint64_t bytes = 0;
  for (const TraceFile& file : files) {
    std::error_code ignored;
    if (const auto size = std::filesystem::file_size(file.path, ignored); !ignored)
      bytes += 2 * size;  // it is read twice
  }
  ProgressCounter counter(progress, bytes);
  TraceBuilder run;
  std::mutex mutex;  // of the builder
  std::vector<Opened> all(files.size());
  parallel_for(files.size(), [&](std::size_t i) {
    Opened& opened = all[i];
    const auto add_rank = [&](Rank info) -> RankBuilder& {
      const std::scoped_lock lock(mutex);
      return *opened.ranks.emplace_back(&run.add_rank(std::move(info)));
    };
    try {
      read_file(files[i], opened, add_rank, counter);
    } catch (const Error& error) {
      if (counter.stopped()) throw;
      opened.failure = error.what();
    }
    for (std::size_t r = 0; r < opened.ranks.size(); ++r) {
      Rank& info = opened.ranks[r]->info();
      opened.ranks[r]->finish();
      if (!opened.failure.empty()) {
        info.format.clear();
        continue;
      }
      info.utc_of_zero_ns = opened.utc_of_zero_ns;
      if (opened.starts[r]) info.start_ns = std::min(info.start_ns, *opened.starts[r]);
    }
  });
  Trace trace = run.finish();
  std::vector<std::string> failures;
  for (const Opened& opened : all) {
    if (!opened.failure.empty()) failures.push_back(opened.failure);
  }
  if (failures.size() == files.size()) throw Error(failures.front());
  std::ranges::move(failures, std::back_inserter(notes));
  std::erase_if(trace.ranks, [](const Rank& rank) { return rank.format.empty(); });  // of files that could not be read
  std::ranges::stable_sort(trace.ranks, {}, [](const Rank& rank) { return std::tie(rank.rank, rank.path); });
  std::map<std::string, std::vector<Rank*>> of_clock;  // that of a file, or by the manifest the one of all
  for (Rank& rank : trace.ranks) {
    if (!offsets.empty()) shift_rank(rank, offsets.at(rank.path));
    of_clock[offsets.empty() ? rank.path : ""].push_back(&rank);
  }
  for (auto& [clock, ranks] : of_clock) begin_at_zero(ranks, of_clock.size() == 1);
  choose_main_threads(trace);
  for (const Opened& opened : all) notes.insert(notes.end(), opened.notes.begin(), opened.notes.end());
  std::ranges::move(trace.notes, std::back_inserter(notes));
  trace.notes = std::move(notes);
  return trace;
}

}  // namespace perfetto_files

const TraceReader perfetto_reader{"perfetto", perfetto_files::recognises, perfetto_files::read};

}  // namespace paceline::analysis
