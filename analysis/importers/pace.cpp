#include "analysis/importers/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/importers/clock_alignment.h"
#include "analysis/importers/pace_file_import.h"
#include "analysis/importers/pace_gaps.h"
#include "analysis/importers/pace_processes.h"
#include "analysis/importers/pace_vocabulary.h"
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
  readings.process_start_utc_ns = header.process_start_utc_ns;
  readings.utc_error_us = process.file.utc_error_us;
  readings.pairs = process.definitions.pairs;
  readings.exchanges = process.definitions.exchanges;
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
  for (const char* said_elsewhere : {"rank", "world_size"}) rank.facts.erase(said_elsewhere);
  rank.ended = file.header.closed != 0;
  rank.damaged = file.damaged;
  rank.damage = file.damage;
  rank.clock_source = clock.by_utc                                           ? "utc"
                      : file.header.clock_source == format::ClockSource::tsc ? "tsc"
                                                                             : "monotonic_raw";
  rank.clock_error_ns = clock.error_ns;
  return rank;
}

// The threads of a child, as threads of its parent's rank.
void add_child(TraceBuilder& run, PaceVocabulary& words, RankBuilder& rank, PaceProcess& child,
               const AlignedClock& clock, double zero) {
  const std::vector<PaceGap> gaps = gaps_of(child.definitions, child.file.header.kept_from);
  PaceFileImport import(run, words, rank, child.definitions, gaps, clock.time, zero);
  rank.info().end_ns = std::max(rank.info().end_ns, import.time(child.definitions.last_ticks));
  for (const auto& [cause, lost] : dropped_of(child.file)) rank.info().dropped[cause] += lost;
  const std::string name = fmt::format("process {}: ", child.file.header.pid);
  import.read_devices(child.file);
  for (std::uint32_t t = 0; t < child.file.tracks.size(); ++t) {
    const bool main = child.file.tracks[t].thread_id == child.file.header.pid;
    import.track(child.file, t, main, name);
    child.file.tracks[t].slots = {};
  }
  import.lost_elsewhere(child.file, name);
  import.add_devices(child.file, name);
  import.counters(fmt::format("process {}", child.file.header.pid));
}

}  // namespace

Trace import_pace(std::vector<format::TraceFile> files, const Progress& progress) {
  std::vector<std::string> notes;
  auto [processes, children] = sort_processes(std::move(files), notes);

  std::vector<ClockReadings> readings;
  for (const PaceProcess& process : processes) readings.push_back(readings_of(process));
  for (const PaceProcess& child : children) readings.push_back(readings_of(child));
  const std::vector<AlignedClock> clocks = align_clocks(readings);
  note_utc(processes, clocks, notes);
  double zero = clocks.empty() ? 0 : clocks.front().process_start_ns;
  for (const AlignedClock& clock : clocks) zero = std::min(zero, clock.process_start_ns);

  TraceBuilder run;
  PaceVocabulary words(run);
  std::string iteration_name;
  for (std::size_t p = 0; p < processes.size(); ++p) {
    PaceProcess& process = processes[p];
    const AlignedClock& clock = clocks[p];
    RankBuilder& rank = run.add_rank(facts_of(process, clock, static_cast<int>(processes.size())));
    const std::vector<PaceGap> gaps = gaps_of(process.definitions, process.file.header.kept_from);
    PaceFileImport import(run, words, rank, process.definitions, gaps, clock.time, zero);
    rank.info().start_ns = whole_ns(clock.process_start_ns - zero);
    rank.info().end_ns = import.time(process.definitions.last_ticks);
    import.gaps();
    if (const auto named = process.definitions.settings.find("iteration_name");
        named != process.definitions.settings.end()) {
      iteration_name = named->second;
    }
    const auto is_main = [&](const format::Track& track) { return track.thread_id == process.file.header.pid; };
    const auto main = std::ranges::find_if(process.file.tracks, is_main);
    const std::size_t main_index =
        main == process.file.tracks.end() ? 0 : static_cast<std::size_t>(main - process.file.tracks.begin());
    import.read_devices(process.file);
    for (std::uint32_t t = 0; t < process.file.tracks.size(); ++t) {
      import.track(process.file, t, t == main_index);
      process.file.tracks[t].slots = {};
    }
    import.lost_elsewhere(process.file);
    import.add_devices(process.file);
    if (const std::string missing = import.nccl_missing(); !missing.empty()) {
      notes.push_back(fmt::format("{}: {}", process.file.path.string(), missing));
    }
    if (import.untimed() > 0) {
      notes.push_back(fmt::format("{}: {} submitted NVTX events left out: no clock of theirs is tied to the recorder's",
                                  process.file.path.string(), import.untimed()));
    }
    for (std::size_t c = 0; c < children.size(); ++c) {
      PaceProcess& child = children[c];
      if (child.child_of != process.file.header.pid || !same_machine(child, process)) continue;
      add_child(run, words, rank, child, clocks[processes.size() + c], zero);
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
