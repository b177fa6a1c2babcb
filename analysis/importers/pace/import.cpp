// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "analysis/clocks/alignment.h"
#include "analysis/importers/pace/file_import.h"
#include "analysis/importers/pace/gaps.h"
#include "analysis/importers/pace/vocabulary.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/builder.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {
namespace {

std::map<std::string, std::uint64_t> dropped_of(const format::TraceFacts& file) {
  std::map<std::string, std::uint64_t> dropped;
  for (std::uint32_t i = 0; i < format::drop_causes; ++i) {
    if (file.header.dropped[i] > 0) dropped[lost_cause_text(i)] += file.header.dropped[i];
  }
  if (file.interrupted > 0) dropped["interrupted"] = file.interrupted;
  return dropped;
}

// Notes the error of each host that is aligned by UTC alone.
void note_utc(const std::vector<PaceProcess>& processes, const std::vector<AlignedClock>& clocks,
              std::vector<std::string>& notes) {
  std::set<std::string> noted;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const format::TraceFacts &file = processes[p].file, &reference = processes.front().file;
    if (!clocks[p].by_utc || !noted.insert(file.host + '\n' + file.boot_id).second) continue;
    std::string how_good = fmt::format("good to {}, as stated by the time services of both hosts",
                                       duration(std::llround(clocks[p].error_ns)));
    if (file.utc_error_us < 0 || reference.utc_error_us < 0) {
      how_good =
          fmt::format("but no time service keeps the clock of {} right: run NTP or PTP there, or record under mpirun",
                      file.utc_error_us < 0 ? file.host : reference.host);
    }
    notes.push_back(fmt::format("no recorder compared the clocks of {} and {}: aligned by UTC alone, {}", file.host,
                                reference.host, how_good));
  }
}

Rank facts_of(const PaceProcess& process, const AlignedClock& clock, int processes) {
  const format::TraceFacts& file = process.file;
  Rank rank;
  rank.rank = process.rank;
  rank.world_size = process.world_size >= 0 ? process.world_size : processes;
  rank.local_rank = std::max(process.local_rank, 0);
  rank.path = file.path.string();
  rank.format = "pace";
  rank.host = file.host;
  rank.boot_id = file.boot_id;
  rank.pid = file.header.pid;
  rank.command = file.command;
  rank.set = file.set;
  rank.dropped = dropped_of(file);
  rank.facts = process.definitions.settings;
  const auto how = rank.facts.find("counter_error_source");
  rank.clock_error_source =
      how != rank.facts.end() ? how->second : "bound for any machine whose kernel relies on the counter";
  for (const char* said_elsewhere : {"rank", "world_size", "training_thread", "counter_error_ns",
                                     "counter_error_source", "spawned_by_mpi", "spawned_processes"}) {
    rank.facts.erase(said_elsewhere);
  }
  rank.ended = file.header.closed != 0;
  rank.damaged = file.damaged;
  rank.damage = file.damage;
  rank.clock_source = clock.by_utc                                           ? "utc"
                      : file.header.clock_source == format::ClockSource::tsc ? "tsc"
                                                                             : "monotonic_raw";
  rank.clock_error_ns = clock.error_ns;
  rank.earlier_starts = process.earlier_starts;
  return rank;
}

std::string process_label(const PaceProcess& process) { return fmt::format("process {}: ", process.file.header.pid); }

constexpr std::size_t no_track = ~std::size_t{0};

// The track of the thread that trains; `otherwise` if that thread recorded nothing.
std::size_t main_index_of(const PaceProcess& process, std::size_t otherwise) {
  const auto tracks = process.events.tracks();
  const std::uint64_t thread = main_thread_of(process.file, process.definitions);
  const auto main = std::ranges::find(tracks, thread, &PaceEvents::TrackId::thread_id);
  return main == tracks.end() ? otherwise : static_cast<std::size_t>(main - tracks.begin());
}

void note_iteration_name(const PaceProcess& process, std::string& name) {
  const auto& settings = process.definitions.settings;
  if (const auto named = settings.find("iteration_name"); named != settings.end()) name = named->second;
}

void add_communicators(const PaceDefinitions& definitions, CommunicatorTexts& texts) {
  const std::map by_number(definitions.communicators.begin(), definitions.communicators.end());
  for (const auto& [number, communicator] : by_number) {
    texts.add(communicator.identity, definitions.name(communicator.name));
  }
}

// One rank of the run, from all of its files. Ranks are independent of each other.
class RankImport {
 public:
  RankImport(RankBuilder& rank, const CommunicatorTexts& communicators, double zero)
      : rank_(rank), words_(rank, communicators), zero_(zero) {}

  // The rank's first file, which must outlive this object.
  void begin(const PaceProcess& process, const AlignedClock& clock) {
    gaps_ = gaps_of(process.definitions, process.file.header.kept_from);
    context_.emplace(rank_, words_, process.events, process.definitions, gaps_, clock.time, zero_);
    Rank& info = rank_.info();
    info.start_ns = whole_ns(clock.process_start_ns - zero_);
    info.end_ns = context_->time(process.definitions.last_ticks);
    info.utc_of_zero_ns = process.file.header.start_utc_ns - context_->time(0);
    const bool is_own = process.role != PaceRole::helper;
    import_.emplace(*context_, is_own ? "" : process_label(process));
    import_->add_rank_facts();
    TrackBuilder* main = import_->add_tracks(main_index_of(process, 0), is_own, nullptr);
    if (process.role == PaceRole::whole) main_track_ = main;
    if (const std::string missing = import_->nccl_missing(); !missing.empty()) {
      notes_.push_back(fmt::format("{}: {}", process.file.path.string(), missing));
    }
    // Ranges that are open on the main thread when a program ends do not continue in the next one.
    if (main_track_ != nullptr) main_track_->end_open_slices(info.end_ns);
    import_->add_counters("");  // before those of its workers
    // Decoding may find damage that no checksum shows.
    if (const std::string damage = process.events.damage(); !damage.empty()) info.damaged = true, info.damage = damage;
  }

  // Another file of the rank: its next program, whose main thread continues the main track, or a process whose threads
  // are helper threads.
  void add(const PaceProcess& process, const AlignedClock& clock) {
    const bool goes_on = process.role == PaceRole::successor;
    const std::vector<PaceGap> gaps = gaps_of(process.definitions, process.file.header.kept_from);
    PaceContext context(rank_, words_, process.events, process.definitions, gaps, clock.time, zero_);
    Rank& info = rank_.info();
    const std::int64_t end_ns = context.time(process.definitions.last_ticks);
    info.end_ns = std::max(info.end_ns, end_ns);
    for (const auto& [cause, lost] : dropped_of(process.file)) info.dropped[cause] += lost;
    PaceFileImport import(context, process_label(process));
    if (goes_on) {
      info.ended = process.file.header.closed != 0;
      info.command = process.file.command;
      info.facts.insert(process.definitions.settings.begin(), process.definitions.settings.end());
      for (const char* said_elsewhere : {"rank", "world_size", "training_thread"}) info.facts.erase(said_elsewhere);
      import.add_rank_facts();
    }
    TrackBuilder* main = import.add_tracks(main_index_of(process, no_track), false, goes_on ? main_track_ : nullptr);
    if (main != nullptr && goes_on) main->end_open_slices(end_ns);
    import.add_counters(fmt::format("process {}", process.file.header.pid));
  }

  void finish() { rank_.finish(); }

  // One line for each thing that was left out.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  RankBuilder& rank_;
  PaceVocabulary words_;
  const double zero_;
  std::vector<PaceGap> gaps_;  // of the first file, like the next two
  std::optional<PaceContext> context_;
  std::optional<PaceFileImport> import_;
  TrackBuilder* main_track_ = nullptr;
  std::vector<std::string> notes_;
};

// A rank's files, its own process first, each with its clock.
using RankFiles = std::vector<std::pair<const PaceProcess*, const AlignedClock*>>;

// `world`: the number of ranks of the run. Ranks are imported in parallel.
Trace import_ranks(const std::vector<RankFiles>& files, const CommunicatorTexts& communicators, double zero,
                   std::size_t world) {
  TraceBuilder run;
  std::vector<RankBuilder*> ranks;
  for (const RankFiles& of_rank : files) {
    ranks.push_back(&run.add_rank(facts_of(*of_rank.front().first, *of_rank.front().second, static_cast<int>(world))));
  }
  std::vector<std::vector<std::string>> notes(files.size());
  parallel_for(files.size(), [&](std::size_t r) {
    RankImport import(*ranks[r], communicators, zero);
    import.begin(*files[r].front().first, *files[r].front().second);
    for (std::size_t f = 1; f < files[r].size(); ++f) import.add(*files[r][f].first, *files[r][f].second);
    import.finish();
    notes[r] = import.notes();
  });
  Trace trace = run.finish();
  notes.push_back(std::move(trace.notes));
  trace.notes.clear();
  for (const auto& of_rank : notes) trace.notes.insert(trace.notes.end(), of_rank.begin(), of_rank.end());
  return trace;
}

}  // namespace

double zero_of(std::span<const AlignedClock> clocks) {
  const auto first = std::ranges::min_element(clocks, {}, &AlignedClock::process_start_ns);
  return first == clocks.end() ? 0 : first->process_start_ns;
}

ClockReadings readings_of(const PaceProcess& process) {
  const format::FileHeader& header = process.file.header;
  ClockReadings readings;
  readings.rank = process.rank;
  readings.ticks_are_ns = header.clock_source == format::ClockSource::monotonic_raw;
  readings.domain = fmt::format("{}\n{}\n{}", process.file.boot_id, process.file.host, readings.ticks_are_ns);
  readings.ticks_per_second = header.ticks_per_second;
  readings.start_ticks = header.start_ticks;
  readings.end_ticks = header.start_ticks + process.definitions.last_ticks;
  readings.start_utc_ns = header.start_utc_ns;
  readings.process_start_utc_ns = plausible_process_start_utc_ns(process.file);
  readings.utc_error_us = process.file.utc_error_us;
  readings.pairs = process.definitions.pairs;
  readings.exchanges = process.definitions.exchanges;
  if (const auto measured = process.definitions.settings.find("counter_error_ns");
      measured != process.definitions.settings.end()) {
    double ns = 0;
    const std::string& text = measured->second;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), ns);
    if (failure == std::errc() && ns > 0 && ns < 1e9) readings.counter_error_ns = ns;
  }
  return readings;
}

struct PaceRun::State {
  std::vector<std::string> notes;
  std::vector<PaceProcess> processes, others;
  std::vector<AlignedClock> clocks;  // of the processes, then of the others
  double zero = 0;
  CommunicatorTexts communicators;
  std::uint64_t slots = 0;
  std::string iteration_name;
};

PaceRun::PaceRun(std::vector<PaceEvents> files, ClockMethod clock) : state_(std::make_unique<State>()) {
  State& run = *state_;
  PaceProcesses sorted = sort_processes(std::move(files), run.notes);
  run.processes = std::move(sorted.ranks);
  run.others = std::move(sorted.others);
  std::vector<ClockReadings> readings;
  for (const PaceProcess& process : run.processes) readings.push_back(readings_of(process));
  for (const PaceProcess& other : run.others) readings.push_back(readings_of(other));
  if (clock == ClockMethod::recorded) {
    for (ClockReadings& of_process : readings) of_process.exchanges.clear();
  }
  run.clocks = align_clocks(readings);
  if (clock != ClockMethod::collectives) note_utc(run.processes, run.clocks, run.notes);
  run.zero = zero_of(run.clocks);
  for (const std::vector<PaceProcess>* all : {&run.processes, &run.others}) {
    for (const PaceProcess& process : *all) {
      add_communicators(process.definitions, run.communicators);
      run.slots += process.events.slots();
    }
  }
  for (const PaceProcess& process : run.processes) note_iteration_name(process, run.iteration_name);
}

PaceRun::~PaceRun() = default;

std::size_t PaceRun::ranks() const { return state_->processes.size(); }
std::uint64_t PaceRun::slots() const { return state_->slots; }

Trace PaceRun::import(std::span<const std::size_t> wanted, const Progress& progress) {
  State& state = *state_;
  // The other files of these ranks, in their order.
  std::vector<std::vector<std::size_t>> others_of(state.processes.size());
  for (std::size_t o = 0; o < state.others.size(); ++o) others_of[state.others[o].rank_index].push_back(o);
  std::uint64_t slots = 0;
  for (const std::size_t p : wanted) {
    slots += state.processes[p].events.slots();
    for (const std::size_t o : others_of[p]) slots += state.others[o].events.slots();
  }
  ProgressCounter counter(progress, slots);
  std::deque<PartCounter> parts;  // one for each file
  for (const std::size_t p : wanted) {
    PaceProcess& process = state.processes[p];
    const std::string name = fmt::format("rank {} on {}", process.rank, process.file.host);
    process.events.count_in(parts.emplace_back(progress, counter, name, process.events.slots()));
  }
  for (const std::size_t p : wanted) {
    for (const std::size_t o : others_of[p]) {
      PaceProcess& other = state.others[o];
      other.events.count_in(parts.emplace_back(progress, counter, "", other.events.slots()));
    }
  }

  std::vector<RankFiles> files;
  for (const std::size_t p : wanted) {
    RankFiles& of_rank = files.emplace_back(RankFiles{{&state.processes[p], &state.clocks[p]}});
    for (const std::size_t o : others_of[p]) {
      of_rank.emplace_back(&state.others[o], &state.clocks[state.processes.size() + o]);
    }
  }
  Trace trace = import_ranks(files, state.communicators, state.zero, state.processes.size());
  trace.notes.insert(trace.notes.begin(), state.notes.begin(), state.notes.end());  // with the first ranks
  state.notes.clear();
  trace.iteration_name = state.iteration_name;
  return trace;
}

Trace PaceRun::import_all(const Progress& progress) {
  std::vector<std::size_t> all(ranks());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return import(all, progress);
}

Trace import_running(std::span<const PaceProcess* const> ranks, std::span<const AlignedClock> clocks) {
  std::vector<RankFiles> files;
  CommunicatorTexts communicators;
  std::string iteration_name;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    files.push_back({{ranks[r], &clocks[r]}});
    add_communicators(ranks[r]->definitions, communicators);
    note_iteration_name(*ranks[r], iteration_name);
  }
  Trace trace = import_ranks(files, communicators, zero_of(clocks), ranks.size());
  trace.iteration_name = iteration_name;
  return trace;
}

Trace import_pace(std::vector<PaceEvents> files, const Progress& progress) {
  return PaceRun(std::move(files)).import_all(progress);
}

Trace import_pace(std::vector<format::TraceFile> files, const Progress& progress) {
  std::vector<PaceEvents> events;
  for (format::TraceFile& file : files) events.emplace_back(std::move(file));
  return import_pace(std::move(events), progress);
}

}  // namespace paceline::analysis
