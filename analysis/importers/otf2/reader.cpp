// SPDX-License-Identifier: Apache-2.0
// Reads OTF2 archives: those of Score-P, TAU, lo2s and others. The anchor file names the archive. Its file of
// definitions and its folder of events stand beside it.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "analysis/clocks/alignment.h"
#include "analysis/importers/otf2/process.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace otf2_files {

// A buffer of the library begins with a mark, its byte order and, in an anchor file only, the name of the format.
bool recognises(const TraceFile& file) {
  char first[6] = {};
  std::ifstream(file.path, std::ios::binary).read(first, sizeof first);
  return (first[1] == 'B' || first[1] == 'L') && std::string_view(first + 2, 4) == "OTF2";
}

struct Process {
  OTF2_LocationGroupRef group = 0;
  RankBuilder* rank = nullptr;
  std::vector<const Otf2Definitions::Location*> locations;
  OTF2_LocationRef main_location = OTF2_UNDEFINED_LOCATION;
  std::uint64_t events = 0;
};

std::vector<Process> processes_of(const Otf2Definitions& definitions, const std::string& name, TraceBuilder& run) {
  const std::map<OTF2_LocationGroupRef, int> ranks = definitions.ranks();
  std::map<OTF2_LocationGroupRef, Process> by_group;
  for (const Otf2Definitions::Location& location : definitions.locations) {
    Process& process = by_group[definitions.process_of(location)];
    process.locations.push_back(&location);
    process.events += std::min<std::uint64_t>(location.events, 1ULL << 40);
    const bool first = process.main_location == OTF2_UNDEFINED_LOCATION;
    if (first && location.type == OTF2_LOCATION_TYPE_CPU_THREAD) process.main_location = location.id;
  }
  const std::vector<OTF2_LocationRef> main_locations = definitions.rank_locations();
  const std::set<OTF2_LocationRef> is_main(main_locations.begin(), main_locations.end());
  for (const Otf2Definitions::Location& location : definitions.locations) {
    if (is_main.contains(location.id)) by_group[definitions.process_of(location)].main_location = location.id;
  }
  std::vector<Process> processes;
  for (auto& [group, process] : by_group) {
    Rank info;
    info.rank = ranks.at(group);
    info.world_size = static_cast<int>(std::max(main_locations.size(), by_group.size()));
    info.path = name;
    info.format = "otf2";
    info.host = definitions.host_of(group);
    info.utc_of_zero_ns = definitions.utc_of_zero_ns;
    info.clock_source = "otf2";  // the recorder put all processes on one clock, with an error that it does not name
    info.clock_error_ns = unset_utc_error_ns;
    process.group = group;
    process.rank = &run.add_rank(std::move(info));
    processes.push_back(std::move(process));
  }
  return processes;
}

Trace read(std::span<const TraceFile> files, const Progress& progress) {
  if (files.size() > 1) {
    throw Error(fmt::format("{} and {}: two OTF2 archives: give the anchor file of one", files[0].name, files[1].name));
  }
  const TraceFile& file = files.front();
  const Otf2Files archive = read_otf2_anchor(file.path, file.name);
  const Otf2Definitions definitions = read_otf2_definitions(archive, file.name);
  TraceBuilder run;
  std::vector<Process> processes = processes_of(definitions, file.name, run);
  std::uint64_t events = 0;
  for (const Process& process : processes) events += process.events + 1;
  ProgressCounter counter(progress, events);
  parallel_for(processes.size(), [&](std::size_t i) {
    Process& process = processes[i];
    Otf2Process import(*process.rank, definitions);
    std::vector<std::string> problems = read_otf2_process(archive, import, process.locations, process.main_location);
    Rank& info = process.rank->info();
    if (!definitions.complete) problems.insert(problems.begin(), "the definitions are incomplete");
    info.damaged = !problems.empty();
    info.damage = fmt::format("{}", fmt::join(problems, "; "));
    process.rank->finish();
    counter.add(process.events + 1);
  });
  return run.finish();
}

}  // namespace otf2_files

const TraceReader otf2_reader{"otf2", otf2_files::recognises, otf2_files::read};

}  // namespace paceline::analysis
