// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "analysis/importers/pace/import.h"
#include "analysis/importers/pace/open.h"
#include "analysis/load/load.h"
#include "analysis/load/merge.h"
#include "analysis/load/sources.h"
#include "analysis/run/summary_bytes.h"
#include "analysis/text/numbers.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace run_reading {

// What one process has read: a whole run, or the summaries of its share of the ranks.
struct Part {
  std::optional<Trace> whole;
  std::vector<RankSummary> summaries;
  std::vector<std::string> notes, notes_of_ranks;  // the latter are those of its share
};

std::vector<PaceEvents> open_files(const RunFiles& run, std::vector<std::string>& notes) {
  OpenedPaceFiles opened = open_pace_files(run.files);
  if (opened.files.empty()) throw Error(run.with_names(opened.failures.front()));
  for (const std::string& failure : opened.failures) notes.push_back(run.with_names(failure));
  return std::move(opened.files);
}

void add_names(const RunFiles& files, Trace& trace) {
  for (Rank& rank : trace.ranks) rank.path = files.with_names(std::move(rank.path));
  for (std::string& note : trace.notes) note = files.with_names(std::move(note));
}

// The summaries of every count-th rank from the number-th on, a few ranks in memory at a time.
void summarise_share(PaceRun& run, const RunFiles& files, std::size_t number, std::size_t count,
                     const Progress& progress, Part& part) {
  std::vector<std::size_t> share;
  for (std::size_t r = number; r < run.ranks(); r += count) share.push_back(r);
  const std::size_t at_once = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  for (std::size_t first = 0; first < share.size(); first += at_once) {
    const std::size_t n = std::min(at_once, share.size() - first);
    const auto all = static_cast<double>(share.size());
    Trace trace = run.import(std::span(share).subspan(first, n),
                             progress.from_to(static_cast<double>(first) / all, static_cast<double>(first + n) / all));
    add_names(files, trace);
    std::ranges::move(summarise(trace), std::back_inserter(part.summaries));
    std::ranges::move(trace.notes, std::back_inserter(part.notes_of_ranks));
  }
}

Part read_files(const RunFiles& files, const std::string& path, const RunReading& reading, const Progress& progress) {
  const std::size_t number = reading.processes != nullptr ? reading.processes->number() : 0;
  const std::size_t count = reading.processes != nullptr ? reading.processes->count() : 1;
  Part part;
  if (files.reader != &pace_reader) {
    if (number == 0) part.whole = load_files(files, progress);
    return part;
  }
  std::vector<std::string> failures;
  PaceRun run(open_files(files, failures));
  if (run.slots() <= reading.most_slots) {
    if (number > 0) return part;
    part.whole = run.import_all(progress);
    add_sources(*part.whole, files);
    add_names(files, *part.whole);
    std::vector<std::string>& notes = part.whole->notes;
    notes.insert(notes.begin(), failures.begin(), failures.end());
    notes.insert(notes.begin(), files.notes.begin(), files.notes.end());
    return part;
  }
  part.notes = files.notes;
  for (const RunFiles::Source& other : files.others) {
    part.notes.push_back(
        fmt::format("{}: left out: a run that is read rank by rank has one source", other.files.front().name));
  }
  part.notes.insert(part.notes.end(), failures.begin(), failures.end());
  std::ranges::move(run.import({}).notes, std::back_inserter(part.notes));  // those of the run as a whole
  part.notes.push_back(
      fmt::format("{}: the run is read rank by rank, because its {} slots are more than {}: without messages, critical "
                  "path and predictions",
                  path, fixed(static_cast<double>(run.slots()), 0), fixed(static_cast<double>(reading.most_slots), 0)));
  summarise_share(run, files, number, count, progress, part);
  return part;
}

Part read_part(const RunPaths& paths, const RunReading& reading, const Progress& progress) {
  if (reading.clock != ClockMethod::automatic) {
    Part part;
    const bool first = reading.processes == nullptr || reading.processes->number() == 0;
    if (first) part.whole = load_run(paths, reading.clock, progress);
    return part;
  }
  const RunFiles files = find_run_files(paths, progress.from_to(0, 0.3));
  try {
    return read_files(files, paths.name(), reading, progress);
  } catch (const Error& error) {
    throw Error(files.with_names(error.what()));
  }
}

ReadRun analysed_part(Part& part, const std::string& path) {
  if (part.whole) {
    std::vector<std::string> notes = part.whole->notes;
    return {analyse_run(*part.whole, path), std::move(notes)};
  }
  std::ranges::sort(part.notes_of_ranks);  // the same order, whoever read them
  std::ranges::move(part.notes_of_ranks, std::back_inserter(part.notes));
  ReadRun read{analyse_run(std::move(part.summaries), path), std::move(part.notes)};
  std::uint64_t messages = 0;
  for (const RangeStatistics& range : read.run.ranges) {
    if (range.category == "point-to-point") messages += range.durations.count();
  }
  read.run.unmatched_messages = messages;
  return read;
}

ReadRun analysed(Part& part, const std::string& path) {
  ReadRun read = analysed_part(part, path);
  if (!read.run.per_rank.empty()) read.run.recorded_utc_ns = read.run.per_rank.front().utc_of_zero_ns;
  return read;
}

}  // namespace run_reading

std::optional<ReadRun> read_run(const RunPaths& paths, const RunReading& reading, const WithProgress& with_progress,
                                bool& failed) {
  using namespace run_reading;
  const std::string path = paths.name();
  failed = false;
  if (reading.processes == nullptr) {
    Part part;
    with_progress([&](const Progress& progress) { part = read_part(paths, reading, progress); });
    return analysed(part, path);
  }
  // Every process takes part in the exchange, also one that failed.
  Part part;
  std::string sent, failure;
  try {
    with_progress([&](const Progress& progress) { part = read_part(paths, reading, progress); });
    sent = 'S' + bytes_of(part.notes_of_ranks, part.summaries);
  } catch (const std::bad_alloc&) {
    failure = fmt::format("{}: not enough memory", path);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (!failure.empty()) sent = 'E' + failure;
  if (reading.processes->number() > 0) part.summaries.clear();
  const std::vector<std::string> received = reading.processes->gather(sent);
  for (const std::string& bytes : received) {
    if (failure.empty() && !bytes.starts_with('S'))
      failure = bytes.empty() ? "a process sent nothing" : bytes.substr(1);
  }
  std::optional<ReadRun> read;
  if (reading.processes->number() == 0 && failure.empty()) {
    try {
      for (std::size_t p = 1; p < received.size(); ++p) {
        SharedSummaries of_process = summaries_from(std::string_view(received[p]).substr(1));
        std::ranges::move(of_process.summaries, std::back_inserter(part.summaries));
        std::ranges::move(of_process.notes, std::back_inserter(part.notes_of_ranks));
      }
      // One process gives the ranks in this order too, which decides between equal figures.
      std::ranges::stable_sort(part.summaries, {}, &RankSummary::rank);
      read = analysed(part, path);
    } catch (const std::bad_alloc&) {
      failure = fmt::format("{}: not enough memory", path);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }
  // Only process 0 knows what the others sent.
  failed = reading.processes->broadcast(!failure.empty());
  if (failed && reading.processes->number() == 0) throw Error(failure);
  return read;
}

}  // namespace paceline::analysis
