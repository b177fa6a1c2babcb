// SPDX-License-Identifier: Apache-2.0
// The row of Kineto's and Chrome's JSON files in the table of readers.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "analysis/importers/kineto/file_reader.h"
#include "analysis/importers/kineto/own_ranks.h"
#include "analysis/importers/kineto/values.h"
#include "analysis/importers/main_thread.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace kineto_files {

using kineto::FileSummary;
using kineto::KinetoRank;

// A time in ns above this one is one since 1970: 2001 or later. Clocks that count from the start of the machine stay
// below it.
constexpr std::int64_t first_date_ns = 1'000'000'000'000'000'000;

struct Opened {
  RankBuilder* builder = nullptr;
  FileSummary summary;
  std::string failure;
  std::vector<std::string> notes;
};

void finish(const TraceFile& file, Opened& opened, KinetoRank& rank) {
  const kineto::Header& header = opened.summary.header;
  Rank& info = opened.builder->info();
  info.path = file.name;
  info.format = header.of_kineto || rank.of_pytorch() ? "kineto" : "chrome";
  info.rank = header.rank.value_or(unknown_rank);
  info.world_size = header.world_size.value_or(1);
  if (header.base_ns && std::abs(*header.base_ns) <= kineto::largest_ns) info.utc_of_zero_ns = header.base_ns;
  info.facts.insert(header.facts.begin(), header.facts.end());
  rank.finish(header);
  if (rank.damaged() > 0) info.dropped["damage"] = rank.damaged();
  if (rank.damaged() > 0 || !opened.summary.closed) {
    info.damaged = rank.damaged() > 0;
    info.ended = opened.summary.closed;
    info.damage = rank.damaged() > 0 ? fmt::format("{} events could not be read", rank.damaged()) : "";
    if (!opened.summary.closed) {
      info.damage += fmt::format("{}the file ends before its last event", info.damage.empty() ? "" : "; ");
    }
  }
  if (rank.left_out() > 0) {
    opened.notes.push_back(
        fmt::format("{}: {} events were left out: object, sample and asynchronous events have no place "
                    "on a thread",
                    file.name, rank.left_out()));
  }
  if (rank.joined_processes() > 0) {
    opened.notes.push_back(
        rank.of_pytorch()
            ? fmt::format("{}: its {} processes were read as one rank, as PyTorch's files have one: open the file of "
                          "each process instead",
                          file.name, rank.joined_processes())
            : fmt::format("{}: its {} processes were read as one rank: --processes ranks makes each one a rank, and "
                          "so do names such as \"rank 0\" (events \"process_name\")",
                          file.name, rank.joined_processes()));
  }
  if (rank.endless() > 0) {
    opened.notes.push_back(
        fmt::format("{}: {} events have a negative duration: they were read as 0 ns", file.name, rank.endless()));
  }
  if (rank.collectives().unnumbered() > 0) {
    opened.notes.push_back(
        fmt::format("{}: {} collectives cannot be matched with other ranks': the file has neither "
                    "their numbers nor iterations (ProfilerStep) to count them in",
                    file.name, rank.collectives().unnumbered()));
  }
}

// Moves the times of a rank so that it begins at 0.
void begin_at_zero(Rank& rank) {
  const std::int64_t zero = rank.start_ns;
  if (!rank.utc_of_zero_ns && zero > first_date_ns) rank.utc_of_zero_ns = 0;
  if (rank.utc_of_zero_ns) *rank.utc_of_zero_ns += zero;
  const auto move = [&](std::vector<std::int64_t>& times) {
    for (std::int64_t& time_ns : times) time_ns -= zero;
  };
  for (Track& track : rank.tracks) {
    move(track.slices.start_ns);
    move(track.marks.start_ns);
    move(track.samples.time_ns);
  }
  rank.start_ns -= zero;
  rank.end_ns -= zero;
}

bool recognises(const TraceFile& file) { return kineto::looks_like_chrome_trace(file.path); }

Trace read(std::span<const TraceFile> files, const Progress& progress) {
  std::uint64_t bytes = 0;
  for (const TraceFile& file : files) {
    std::error_code ignored;
    if (const auto size = std::filesystem::file_size(file.path, ignored); !ignored) bytes += size;
  }
  ProgressCounter counter(progress, bytes);
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t threads = std::max<std::size_t>(cores / files.size(), 1);
  TraceBuilder run;
  std::vector<Opened> all(files.size());
  for (Opened& opened : all) opened.builder = &run.add_rank(Rank{});
  parallel_for(files.size(), [&](std::size_t i) {
    Opened& opened = all[i];
    KinetoRank rank(*opened.builder, files[i].processes);
    try {
      opened.summary = kineto::read_file(files[i], rank, threads, counter);
    } catch (const Error& error) {
      if (counter.stopped()) throw;
      opened.failure = error.what();
      return;
    }
    finish(files[i], opened, rank);
    opened.builder->finish();
  });
  std::vector<std::string> failures, notes;
  for (Opened& opened : all) {
    if (!opened.failure.empty()) failures.push_back(opened.failure);
    notes.insert(notes.end(), opened.notes.begin(), opened.notes.end());
  }
  if (failures.size() == files.size()) throw Error(failures.front());
  Trace trace = run.finish();
  std::erase_if(trace.ranks, [](const Rank& rank) { return rank.format.empty(); });  // of files that could not be read
  std::vector<Rank> ranks;
  for (Rank& rank : trace.ranks) {
    begin_at_zero(rank);
    kineto::split_own_ranks(std::move(rank), ranks);
  }
  trace.ranks = std::move(ranks);
  choose_main_threads(trace);  // of processes that are ranks
  std::ranges::stable_sort(trace.ranks, {}, &Rank::rank);
  std::ranges::move(trace.notes, std::back_inserter(notes));
  trace.notes = std::move(failures);
  std::ranges::move(notes, std::back_inserter(trace.notes));
  return trace;
}

}  // namespace kineto_files

const TraceReader kineto_reader{"kineto", kineto_files::recognises, kineto_files::read};

}  // namespace paceline::analysis
