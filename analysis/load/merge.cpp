// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/importers/pace/import.h"
#include "analysis/importers/pace/open.h"
#include "analysis/importers/pace/processes.h"
#include "analysis/load/load.h"
#include "analysis/load/rank_numbers.h"
#include "analysis/load/run_files.h"
#include "analysis/load/sources.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace merging {

namespace fs = std::filesystem;

constexpr double finding_share = 0.3;  // of the time, where files are unpacked

// One of the files that a reader recognised.
struct Candidate {
  TraceFile file;
  MergedFile row;
  std::optional<PaceEvents> events;  // of a .pace file, until it is imported

  bool in_run() const { return row.in_run(); }
};

std::string loss_of(const Rank& rank) {
  std::vector<std::string> losses;
  if (rank.damaged) losses.push_back("damaged: " + rank.damage);
  std::uint64_t dropped = 0;
  for (const auto& [cause, events] : rank.dropped) {
    if (cause != "too_many_names" && cause != "payload_cut") dropped += events;
  }
  if (dropped > 0) losses.push_back(fmt::format("{} events dropped", count(static_cast<double>(dropped))));
  std::int64_t lost_ns = 0;
  for (const LostInterval& loss : main_thread_losses(rank)) lost_ns += loss.end_ns - loss.start_ns;
  if (lost_ns > 0) losses.push_back(fmt::format("{} of the main thread not recorded", duration(lost_ns)));
  return fmt::format("{}", fmt::join(losses, "; "));
}

// How a rank's times came to the clock of the run's first rank.
std::string clock_of(const Rank& rank, const Rank& first) {
  if (rank.clock_source == "collectives" || rank.clock_source == "none") return rank.clock_source;
  if (rank.clock_source == "utc") return "UTC";
  if (rank.clock_source == "file") return "clock of the file";
  const bool same = rank.host == first.host && rank.boot_id == first.boot_id && rank.clock_source == first.clock_source;
  return same ? "shared clock" : "clock exchange";
}

void describe(const Rank& rank, const Rank& first, MergedFile& row) {
  row.rank = rank.rank;
  row.host = rank.host;
  row.start_ns = rank.start_ns;
  row.end_ns = rank.end_ns;
  row.clock = clock_of(rank, first);
  row.clock_error_ns = rank.clock_error_ns;
  row.loss = loss_of(rank);
}

// "cut in its header" of "run/rank-0.pace: cut in its header".
std::string without_name(const std::string& name, const std::string& text) {
  if (!text.starts_with(name)) return text;
  const std::size_t begin = text.find_first_not_of(": ", name.size());
  return begin == std::string::npos ? text : text.substr(begin);
}

// The first note about a file, without its name; "" if there is none.
std::string note_about(const std::string& name, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    if (note.starts_with(name)) return without_name(name, note);
  }
  return "";
}

class Merge {
 public:
  Merge(const MergeChoices& choices, TraceReaders readers) : choices_(choices), readers_(readers) {}

  // Fills candidates_ with the files of one format, by name, and others_ with the rest.
  void find(std::span<const fs::path> paths, const Progress& progress) {
    bool stopped = false;
    const auto passed_on = [&](double share) {
      stopped = stopped || (progress && !progress(share));
      return !stopped;
    };
    for (const fs::path& path : paths) {
      RunPaths one(path);
      one.processes = choices_.processes;
      try {
        found_.push_back(find_run_files(one, passed_on, readers_));
      } catch (const Error& error) {
        if (stopped || paths.size() == 1) throw;
        others_.push_back({.name = path.string(), .left_out = without_name(path.string(), error.what())});
      }
    }
    if (found_.empty()) throw Error(fmt::format("{}: {}", others_.front().name, others_.front().left_out));
    const auto place = [&](const RunFiles& run) { return std::ranges::find(readers_, run.reader) - readers_.begin(); };
    reader_ = std::ranges::min_element(found_, {}, place)->reader;
    for (const RunFiles& run : found_) add_files(run);
    std::ranges::stable_sort(candidates_, {}, [](const Candidate& one) -> const std::string& { return one.row.name; });
  }

  MergedRun load(const Progress& progress) {
    if (std::ranges::none_of(candidates_, &Candidate::in_run)) throw Error("no file is left: choose at least one");
    MergedRun merged;
    merged.trace = reader_ == &pace_reader ? load_pace(progress) : load_others(progress);
    shift(merged.trace);
    join_sources(merged.trace);
    std::vector<std::string>& notes = merged.trace.notes;
    notes.insert(notes.begin(), notes_.begin(), notes_.end());
    fill_rows(merged);
    note_what_was_left_out(merged);
    return merged;
  }

  // The names of unpacked files for people.
  std::string with_names(std::string text) const {
    for (const RunFiles& run : found_) text = run.with_names(std::move(text));
    return text;
  }

 private:
  void add_files(const RunFiles& run) {
    notes_.insert(notes_.end(), run.notes.begin(), run.notes.end());
    add_files(run.reader, run.files);
    for (const RunFiles::Source& other : run.others) add_files(other.reader, other.files);
  }

  void add_files(const TraceReader* reader, const std::vector<TraceFile>& files) {
    for (const TraceFile& file : files) {
      Candidate one{.file = file, .row = {.name = file.name, .format = std::string(reader->name)}, .events = {}};
      std::error_code error;
      const fs::path canonical = fs::weakly_canonical(file.path, error);
      if (!seen_.insert(error ? file.name : canonical.string()).second) continue;  // given twice, or with its directory
      if (choices_.without.contains(file.name)) {
        one.row.left_out = "not chosen";
      } else if (reader != reader_) {
        const auto known = std::ranges::find(sources_.others, reader, &RunFiles::Source::reader);
        (known == sources_.others.end() ? sources_.others.emplace_back(RunFiles::Source{reader, {}}) : *known)
            .files.push_back(file);
        continue;
      }
      candidates_.push_back(std::move(one));
    }
  }

  // The files of other formats.
  void join_sources(Trace& trace) {
    sources_.reader = reader_;
    const std::vector<const TraceReader*> without = add_sources(trace, sources_);
    for (const RunFiles::Source& source : sources_.others) {
      const bool left_out = std::ranges::find(without, source.reader) != without.end();
      for (const TraceFile& file : source.files) {
        MergedFile row{.name = file.name, .format = std::string(source.reader->name)};
        row.part = "more of the ranks";
        if (left_out) {
          row.left_out = fmt::format("of the format {}, and this run is read as {}", row.format, reader_->name);
        }
        others_.push_back(std::move(row));
      }
    }
  }

  std::vector<Candidate*> taken() {
    std::vector<Candidate*> in_run;
    for (Candidate& one : candidates_) {
      if (one.in_run()) in_run.push_back(&one);
    }
    return in_run;
  }

  Trace load_pace(const Progress& progress) {
    open_pace();
    if (!choices_.refuse) {
      leave_other_jobs_out();
      leave_copies_out();
    }
    PaceRun run(sorted_pace(), choices_.clock);
    Trace trace = run.import_all(progress);
    std::erase_if(trace.notes,
                  [&](const std::string& note) { return std::ranges::find(notes_, note) != notes_.end(); });
    if (choices_.clock == ClockMethod::exchange) refuse_unexchanged(trace);
    if (choices_.clock == ClockMethod::collectives) align_ranks(trace, choices_.clock);
    return trace;
  }

  void open_pace() {
    std::vector<Candidate*> files = taken();
    parallel_for(files.size(), [&](std::size_t i) {
      OpenedPaceFiles opened = open_pace_files(std::span(&files[i]->file, 1));
      MergedFile& row = files[i]->row;
      if (opened.files.empty()) {
        row.left_out = without_name(files[i]->file.path.string(), opened.failures.front());
        return;
      }
      const PaceEvents& events = files[i]->events.emplace(std::move(opened.files.front()));
      const format::TraceFacts& facts = events.facts();
      const double rate = facts.header.ticks_per_second;
      const bool plausible = rate > 1e3 && rate < 1e12;
      if (facts.header.rank >= 0) row.rank = facts.header.rank;
      row.host = facts.host;
      row.end_ns = static_cast<std::int64_t>(static_cast<double>(events.last_ticks()) * (plausible ? 1e9 / rate : 1));
      if (facts.damaged) row.loss = "damaged: " + facts.damage;
    });
    if (std::ranges::none_of(candidates_, &Candidate::in_run)) {
      throw Error(fmt::format("{}: {}", files.front()->row.name, files.front()->row.left_out));
    }
  }

  void leave_other_jobs_out() {
    std::map<std::string, std::size_t> jobs;
    for (const Candidate* one : taken()) ++jobs[one->events->facts().job];
    jobs.erase("");
    if (jobs.size() < 2) return;
    const std::string kept = std::ranges::max_element(jobs, {}, [](const auto& job) { return job.second; })->first;
    for (Candidate* one : taken()) {
      const std::string& job = one->events->facts().job;
      if (!job.empty() && job != kept) {
        one->row.left_out = fmt::format("of another job: {}, and this run is job {}", job, kept);
      }
    }
  }

  void leave_copies_out() {
    std::map<std::string, Candidate*> longest;  // by recording
    for (Candidate* one : taken()) {
      const format::TraceFacts& facts = one->events->facts();
      // Files of old versions have no number of their own.
      const std::string recording = facts.header.file_id != 0 ? fmt::format("{:x}", facts.header.file_id)
                                                              : fmt::format("{} {} {} {}", facts.host, facts.boot_id,
                                                                            facts.header.pid, facts.header.start_ticks);
      Candidate*& kept = longest.try_emplace(recording, one).first->second;
      if (kept == one) continue;
      Candidate* shorter = one;
      if (one->events->slots() > kept->events->slots()) std::swap(kept, shorter);
      shorter->row.left_out = fmt::format("a copy of {}", kept->row.name);
    }
  }

  // The files of the run as the importer sorts them; notes what each one is, and which ones it leaves out.
  std::vector<PaceEvents> sorted_pace() {
    std::map<fs::path, Candidate*> by_path;
    std::vector<PaceEvents> files;
    for (Candidate* one : taken()) {
      by_path[one->file.path] = one;
      files.push_back(std::move(*one->events));
      one->events.reset();
      one->row.left_out = "not a process of this run";  // until it is found below
    }
    std::vector<std::string> notes;
    PaceProcesses sorted = sort_processes(std::move(files), notes);
    std::vector<PaceEvents> in_run;
    const auto take = [&](PaceProcess& process) {
      MergedFile& row = by_path.at(process.file.path)->row;
      row.left_out.clear();
      in_run.push_back(std::move(process.events));
      return &row;
    };
    for (PaceProcess& process : sorted.ranks) take(process)->rank = process.rank;
    for (PaceProcess& process : sorted.others) {
      MergedFile* row = take(process);
      row->rank = sorted.ranks[process.rank_index].rank;
      row->part = process.role == PaceRole::successor ? "a later program of the rank" : "helper threads of the rank";
    }
    for (auto& [path, one] : by_path) {
      if (one->in_run()) continue;
      if (const std::string why = note_about(path.string(), notes); !why.empty()) one->row.left_out = why;
    }
    for (std::string& note : notes) notes_.push_back(std::move(note));
    return in_run;
  }

  // By the user's choice, ranks that only UTC aligns are no run.
  void refuse_unexchanged(const Trace& trace) const {
    for (const Rank& rank : trace.ranks) {
      if (rank.clock_source != "utc") continue;
      throw Error(fmt::format("{}: its clock was not compared with that of {}: choose another method to align them",
                              rank.path, trace.ranks.front().path));
    }
  }

  Trace load_others(const Progress& progress) {
    std::vector<TraceFile> files;
    for (const Candidate* one : taken()) files.push_back(one->file);
    Trace trace = reader_->read(files, progress);
    for (Rank& rank : trace.ranks) rank.path = with_names(std::move(rank.path));
    if (!choices_.refuse) leave_duplicates_out(trace);
    if (!reader_->whole_runs) number_ranks(trace);
    align_ranks(trace, choices_.clock);
    return trace;
  }

  void leave_duplicates_out(Trace& trace) {
    for (const Rank& rank : take_duplicate_ranks(trace)) {
      MergedFile row{.name = rank.path, .format = rank.format};
      describe(rank, rank, row);
      row.clock.clear();
      row.left_out = fmt::format("rank {} was given already", rank.rank);
      others_.push_back(std::move(row));
    }
  }

  void shift(Trace& trace) const {
    if (choices_.offset_ns.empty()) return;
    for (Rank& rank : trace.ranks) {
      const auto offset = choices_.offset_ns.find(with_names(rank.path));
      if (offset != choices_.offset_ns.end()) shift_rank(rank, offset->second);
    }
    // The run begins at 0.
    const std::int64_t first = std::ranges::min_element(trace.ranks, {}, &Rank::start_ns)->start_ns;
    for (Rank& rank : trace.ranks) shift_rank(rank, -first);
  }

  void fill_rows(MergedRun& merged) {
    Trace& trace = merged.trace;
    for (Rank& rank : trace.ranks) rank.path = with_names(std::move(rank.path));
    for (std::string& note : trace.notes) note = with_names(std::move(note));
    std::set<std::string> shown;
    for (const MergedFile& other : others_) shown.insert(other.name);
    for (const Rank& rank : trace.ranks) {
      MergedFile row{.name = rank.path, .format = rank.format};
      describe(rank, trace.ranks.front(), row);
      shown.insert(rank.path);
      merged.files.push_back(std::move(row));
    }
    for (const Candidate& one : candidates_) {
      if (shown.contains(one.row.name)) continue;
      MergedFile row = one.row;
      row.left_out = with_names(row.left_out);
      row.loss = with_names(row.loss);
      // A reader notes the files that it cannot read.
      if (row.in_run() && row.part.empty()) row.left_out = note_about(row.name, trace.notes);
      (row.in_run() ? merged.files : others_).push_back(std::move(row));
    }
    std::ranges::stable_sort(merged.files, {}, [](const MergedFile& file) { return file.rank; });
    std::ranges::stable_sort(others_, {}, &MergedFile::name);
    std::ranges::move(others_, std::back_inserter(merged.files));
  }

  // For those who see only the notes, as on the command line.
  void note_what_was_left_out(MergedRun& merged) const {
    std::vector<std::string>& notes = merged.trace.notes;
    for (const MergedFile& file : merged.files) {
      if (file.in_run() || choices_.without.contains(file.name) || !note_about(file.name, notes).empty()) continue;
      notes.push_back(fmt::format("{}: left out: {}", file.name, file.left_out));
    }
  }

  const MergeChoices& choices_;
  TraceReaders readers_;
  std::vector<RunFiles> found_;
  const TraceReader* reader_ = nullptr;
  RunFiles sources_;  // only the files of other formats
  std::vector<Candidate> candidates_;
  std::vector<MergedFile> others_;  // left out before or after the candidates were read
  std::set<std::string> seen_;
  std::vector<std::string> notes_;
};

}  // namespace merging

MergedRun load_merged(std::span<const std::filesystem::path> paths, const MergeChoices& choices,
                      const Progress& progress, TraceReaders readers) {
  merging::Merge merge(choices, readers);
  merge.find(paths, progress.from_to(0, merging::finding_share));
  try {
    return merge.load(progress.from_to(merging::finding_share, 1));
  } catch (const Error& error) {
    throw Error(merge.with_names(error.what()));
  }
}

Trace load_run(const RunPaths& run, ClockMethod clock, const Progress& progress) {
  if (clock == ClockMethod::automatic) return load_run(run, progress);
  Trace trace = load_merged(run.paths, {.clock = clock, .processes = run.processes, .refuse = true}, progress).trace;
  if (!run.note.empty()) trace.notes.insert(trace.notes.begin(), run.note);
  return trace;
}

std::optional<ClockMethod> clock_method_named(const std::string& name) {
  if (name == "auto") return ClockMethod::automatic;
  if (name == "recorded") return ClockMethod::recorded;
  if (name == "exchange") return ClockMethod::exchange;
  if (name == "collectives") return ClockMethod::collectives;
  return std::nullopt;
}

}  // namespace paceline::analysis
