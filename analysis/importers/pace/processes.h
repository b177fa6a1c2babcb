// SPDX-License-Identifier: Apache-2.0
// Finds out which recorded process belongs to which rank, before the files are read in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/importers/pace/definitions.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {

// The part of a process in its rank.
enum class PaceRole {
  whole,      // the rank's own process: its main thread is the rank's main thread
  successor,  // continues the rank: the same process after exec, or the next program of a script
  helper,     // a worker or another child: its threads are helper threads
};

// One process of the run, or one program that a process ran: its file and its definitions.
struct PaceProcess {
  PaceEvents events;
  format::TraceFacts file;
  PaceDefinitions definitions;
  int rank = -1, world_size = -1, local_rank = -1;
  PaceRole role = PaceRole::whole;
  std::size_t rank_index = 0;  // of the rank that its events belong to, in PaceProcesses::ranks
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> earlier_starts = {};  // as in Rank
};

struct PaceProcesses {
  std::vector<PaceProcess> ranks;   // one for each rank, by rank; a helper if the rank's own process was not recorded
  std::vector<PaceProcess> others;  // all other files, by start time
};

// The system's id of the thread that trains: the process's first one, unless the recorder saw another train.
std::uint64_t main_thread_of(const format::TraceFacts& file, const PaceDefinitions& definitions);

// Reads each file's definitions and groups the processes by their ancestors, never by the events that they recorded:
//
// - Files with one PID namespace, process id and start belong to one process, unless their ranks differ. After exec it
//   continues; in a second copy of the recorder (dlmopen) its threads are helper threads.
// - A process with a recorded ancestor is a helper of that ancestor's rank, unless it has another rank itself.
// - Processes that were forked from one unrecorded process are helpers of one rank, the rank of that process.
// - If several other processes have one rank, the first one is the rank. A process that begins after the rank's last
//   program has ended is its successor; the others are helpers. If they are on several machines, those of the last
//   machine are taken and the others are noted.
// - If mpirun or srun was started several times in one job, or torchrun started the ranks again, one after the other
//   and with ranks in common, the processes of the last start are taken. The others are left out.
// - A process without a rank is left out, with the helpers that are its own, if processes with ranks descend from it:
//   it started them, as torchrun does.
//
// Processes without a rank are numbered by start time; those that one process started, one after another, are the
// programs of a script, and one rank. Files that are left out are named in `notes`. Throws Error if the files belong to
// different jobs. Cost: linear in the definitions of the files, and n log n for n files.
PaceProcesses sort_processes(std::vector<PaceEvents> files, std::vector<std::string>& notes);

// When the system started the process; 0 if the time is not known or not plausible.
std::int64_t plausible_process_start_utc_ns(const format::TraceFacts& file);

}  // namespace paceline::analysis
