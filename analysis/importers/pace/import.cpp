#include "analysis/importers/pace/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "analysis/clocks/alignment.h"
#include "analysis/importers/pace/file_import.h"
#include "analysis/importers/pace/gaps.h"
#include "analysis/importers/pace/processes.h"
#include "analysis/importers/pace/vocabulary.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

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

std::map<std::string, std::uint64_t> dropped_of(const format::TraceFile& file) {
  std::map<std::string, std::uint64_t> dropped;
  for (std::uint32_t i = 0; i < format::drop_causes; ++i) {
    if (file.header.dropped[i] > 0) dropped[lost_cause_text(i)] += file.header.dropped[i];
  }
  return dropped;
}

// Says of each host that only UTC puts on the run's clock how good that is.
void note_utc(const std::vector<PaceProcess>& processes, const std::vector<AlignedClock>& clocks,
              std::vector<std::string>& notes) {
  std::set<std::string> noted;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const format::TraceFile &file = processes[p].file, &reference = processes.front().file;
    if (!clocks[p].by_utc || !noted.insert(file.host + '\n' + file.boot_id).second) continue;
    std::string how_good = fmt::format("good to {:.1f} ms, by their systems' own word", clocks[p].error_ns * 1e-6);
    if (file.utc_error_us < 0 || reference.utc_error_us < 0) {
      how_good = fmt::format("which nobody keeps right on {}: run NTP or PTP there, or record under mpirun",
                             file.utc_error_us < 0 ? file.host : reference.host);
    }
    notes.push_back(fmt::format("no recorder compared the clocks of {} and {}: aligned by UTC alone, {}", file.host,
                                reference.host, how_good));
  }
}

Rank facts_of(const PaceProcess& process, const AlignedClock& clock, int processes) {
  const format::TraceFile& file = process.file;
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
  for (const char* said_elsewhere :
       {"rank", "world_size", "counter_error_ns", "counter_error_source", "spawned_by_mpi", "spawned_processes"}) {
    rank.facts.erase(said_elsewhere);
  }
  rank.ended = file.header.closed != 0;
  rank.damaged = file.damaged;
  rank.damage = file.damage;
  rank.clock_source = clock.by_utc                                           ? "utc"
                      : file.header.clock_source == format::ClockSource::tsc ? "tsc"
                                                                             : "monotonic_raw";
  rank.clock_error_ns = clock.error_ns;
  return rank;
}

std::string process_label(const PaceProcess& process) { return fmt::format("process {}: ", process.file.header.pid); }

std::size_t main_index_of(const format::TraceFile& file) {
  const auto main = std::ranges::find(file.tracks, file.header.pid, &format::Track::thread_id);
  return main == file.tracks.end() ? 0 : static_cast<std::size_t>(main - file.tracks.begin());
}

// What is open on the main thread when a program ends does not go on in the next one.
void end_open_slices(const PaceVocabulary& words, TrackBuilder& track, std::int64_t end_ns) {
  for (std::uint32_t slice = 0; slice < track.slices().size(); ++slice) {
    if (!track.is_open(slice)) continue;
    track.argument(slice, words.unfinished, 1);
    track.end_slice(slice, end_ns);
  }
}

void add_communicators(const PaceDefinitions& definitions, CommunicatorTexts& texts) {
  const std::map<std::uint32_t, PaceDefinitions::Communicator> by_number(definitions.communicators.begin(),
                                                                         definitions.communicators.end());
  for (const auto& [number, communicator] : by_number) {
    texts.add(communicator.identity, definitions.name(communicator.name));
  }
}

// Another file of the rank: its next program, whose main thread goes on on `main_track`, or a process whose threads are
// helper threads.
void add_process(PaceVocabulary& words, RankBuilder& rank, PaceProcess& process, const AlignedClock& clock, double zero,
                 TrackBuilder* main_track) {
  const bool goes_on = process.role == PaceRole::successor;
  const std::vector<PaceGap> gaps = gaps_of(process.definitions, process.file.header.kept_from);
  PaceFileImport import(words, rank, process.definitions, gaps, clock.time, zero);
  const std::int64_t end_ns = import.time(process.definitions.last_ticks);
  rank.info().end_ns = std::max(rank.info().end_ns, end_ns);
  for (const auto& [cause, lost] : dropped_of(process.file)) rank.info().dropped[cause] += lost;
  if (goes_on) {
    rank.info().ended = process.file.header.closed != 0;
    rank.info().command = process.file.command;
    rank.info().facts.insert(process.definitions.settings.begin(), process.definitions.settings.end());
    for (const char* said_elsewhere : {"rank", "world_size"}) rank.info().facts.erase(said_elsewhere);
    import.gaps();
  }
  const std::string label = process_label(process);
  const std::size_t main_index = main_index_of(process.file);
  import.read_devices(process.file);
  for (std::uint32_t t = 0; t < process.file.tracks.size(); ++t) {
    const bool main = t == main_index && process.file.tracks[t].thread_id == process.file.header.pid;
    TrackBuilder& track = import.track(process.file, t, main, label, main && goes_on ? main_track : nullptr);
    if (main && goes_on) end_open_slices(words, track, end_ns);
    process.file.tracks[t].slots = {};
  }
  import.lost_elsewhere(process.file, label);
  import.add_devices(process.file, label);
  import.counters(fmt::format("process {}", process.file.header.pid));
}

}  // namespace

Trace import_pace(std::vector<format::TraceFile> files, const Progress& progress) {
  std::vector<std::string> notes;
  auto [processes, others] = sort_processes(std::move(files), notes);

  std::vector<ClockReadings> readings;
  for (const PaceProcess& process : processes) readings.push_back(readings_of(process));
  for (const PaceProcess& other : others) readings.push_back(readings_of(other));
  const std::vector<AlignedClock> clocks = align_clocks(readings);
  note_utc(processes, clocks, notes);
  double zero = clocks.empty() ? 0 : clocks.front().process_start_ns;
  for (const AlignedClock& clock : clocks) zero = std::min(zero, clock.process_start_ns);

  TraceBuilder run;
  CommunicatorTexts communicators;
  for (const std::vector<PaceProcess>* all : {&processes, &others}) {
    for (const PaceProcess& process : *all) add_communicators(process.definitions, communicators);
  }
  std::string iteration_name;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    PaceProcess& process = processes[p];
    const AlignedClock& clock = clocks[p];
    RankBuilder& rank = run.add_rank(facts_of(process, clock, static_cast<int>(processes.size())));
    PaceVocabulary words(rank, communicators);
    const std::vector<PaceGap> gaps = gaps_of(process.definitions, process.file.header.kept_from);
    PaceFileImport import(words, rank, process.definitions, gaps, clock.time, zero);
    rank.info().start_ns = whole_ns(clock.process_start_ns - zero);
    rank.info().end_ns = import.time(process.definitions.last_ticks);
    import.gaps();
    if (const auto named = process.definitions.settings.find("iteration_name");
        named != process.definitions.settings.end()) {
      iteration_name = named->second;
    }
    TrackBuilder* main_track = nullptr;
    const std::string label = process.role == PaceRole::helper ? process_label(process) : "";
    const std::size_t main_index = main_index_of(process.file);
    import.read_devices(process.file);
    for (std::uint32_t t = 0; t < process.file.tracks.size(); ++t) {
      TrackBuilder& track = import.track(process.file, t, t == main_index, label);
      if (t == main_index && process.role == PaceRole::whole) main_track = &track;
      process.file.tracks[t].slots = {};
    }
    import.lost_elsewhere(process.file, label);
    import.add_devices(process.file, label);
    if (const std::string missing = import.nccl_missing(); !missing.empty()) {
      notes.push_back(fmt::format("{}: {}", process.file.path.string(), missing));
    }
    if (import.untimed() > 0) {
      notes.push_back(fmt::format("{}: {} submitted NVTX events left out: no clock of theirs is tied to the recorder's",
                                  process.file.path.string(), import.untimed()));
    }
    if (main_track != nullptr) end_open_slices(words, *main_track, rank.info().end_ns);
    for (std::size_t o = 0; o < others.size(); ++o) {
      if (others[o].rank_index != p) continue;
      add_process(words, rank, others[o], clocks[processes.size() + o], zero, main_track);
    }
    import.counters();
    if (progress && !progress(static_cast<double>(p + 1) / static_cast<double>(processes.size()))) {
      throw Error("loading was stopped");
    }
  }
  Trace trace = run.finish();
  trace.notes = std::move(notes);
  trace.iteration_name = std::move(iteration_name);
  return trace;
}

}  // namespace paceline::analysis
