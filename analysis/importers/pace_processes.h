// Which recorded process is which rank: the files of a run, sorted out before they are read in full.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/importers/pace_definitions.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {

// One process of the run: its file and what is known of it.
struct PaceProcess {
  format::TraceFile file;
  PaceDefinitions definitions;
  int rank = -1, world_size = -1, local_rank = -1;
  std::uint32_t child_of = 0;  // process id of the rank whose events these are as well; 0 = its own
};

struct PaceProcesses {
  std::vector<PaceProcess> ranks;     // one a rank, by rank
  std::vector<PaceProcess> children;  // processes whose events belong to the rank of another one
};

// Reads each file's definitions, gives every process its rank, and keeps one process a rank; `notes` are told what was
// left out. Throws Error where files are of different jobs. Cost: a pass over each file's events, and the square of
// the number of processes where there are children.
PaceProcesses sort_processes(std::vector<format::TraceFile> files, std::vector<std::string>& notes);

bool same_machine(const PaceProcess& a, const PaceProcess& b);

}  // namespace paceline::analysis
