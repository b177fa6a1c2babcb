// Which recorded process is which rank: the files of a run, sorted out before they are read in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/importers/pace/definitions.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {

// What a process is in its rank.
enum class PaceRole {
  whole,      // the rank's own process: its main thread is the rank's
  successor,  // the rank goes on in it: the same process after exec, or the next program of a script
  helper,     // a worker or another child: its threads are helper threads
};

// One process of the run, or one program of it: its file and what is known of it.
struct PaceProcess {
  PaceEvents events;
  format::TraceFacts file;
  PaceDefinitions definitions;
  int rank = -1, world_size = -1, local_rank = -1;
  PaceRole role = PaceRole::whole;
  std::size_t rank_index = 0;  // of the rank that its events belong to, in PaceProcesses::ranks
};

struct PaceProcesses {
  std::vector<PaceProcess> ranks;   // one a rank, by rank; a helper where the rank's own process was not recorded
  std::vector<PaceProcess> others;  // all other files, by the time of their starts
};

// Reads each file's definitions and puts the processes together by their ancestors, never by what they recorded:
//
// - Files of one process (the same id and start) are one: after exec it goes on, in a second copy of the recorder
//   (dlmopen) its threads are helper threads.
// - A process whose ancestor is recorded is a helper of that ancestor's rank, unless its own rank is another one.
// - Processes that were forked from one that is not recorded are helpers of one rank, as that process's own.
// - Of several further processes with one rank, the first is the rank. One that begins when the rank's last program has
//   ended is its successor; others are helpers. On another machine the last one is taken, and the rest is noted.
//
// Processes without a rank are numbered by their starts. `notes` gets what was left out. Throws Error where files
// belong to different jobs. Cost: a pass over each file's events, and n log n for n files.
PaceProcesses sort_processes(std::vector<PaceEvents> files, std::vector<std::string>& notes);

// When the system started the process; 0 where it is not known or cannot be.
std::int64_t plausible_process_start_utc_ns(const format::TraceFacts& file);

bool same_machine(const PaceProcess& a, const PaceProcess& b);

}  // namespace paceline::analysis
