// SPDX-License-Identifier: Apache-2.0
// Loads several files and directories as one run, and reports on each file: how its clock is aligned, what is missing
// in it, and why it was left out where it was. Files that do not belong to the run are left out and not refused: other
// formats, other jobs, copies, and a rank that was given already.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analysis/clocks/trace_alignment.h"
#include "analysis/load/readers.h"
#include "analysis/load/run_paths.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct MergeChoices {
  ClockMethod clock = ClockMethod::automatic;
  Processes processes = Processes::automatic;
  std::set<std::string> without = {};                  // the names of files that the user leaves out
  std::map<std::string, std::int64_t> offset_ns = {};  // by the name of a file: added to its times after alignment
  bool refuse = false;  // throw Error, as load_run() does, where files are of several jobs or ranks are given twice
};

// A file of the merge. A file with several ranks has one of these for each.
struct MergedFile {
  std::string name = {};         // as the user knows it: its path, or "run4.tar.gz/rank-0.json"
  std::string format = {};       // that of its reader; "" where no reader recognises it
  std::optional<int> rank = {};  // that it is, or that it belongs to
  std::string host = {};
  std::int64_t start_ns = 0, end_ns = 0;  // on the run's clock. Where it was left out only the difference has a meaning
  std::string clock = {};     // how it was aligned: "clock exchange", "shared clock", "UTC", "collectives", …
  double clock_error_ns = 0;  // bound against the run's clock; at least unset_utc_error_ns: not known
  std::string loss = {};      // what the file lacks: damage, dropped events; "" if it is complete
  std::string part = {};      // "" for a rank's own file; else what it adds to the rank
  std::string left_out = {};  // why it is not in the run; "" if it is

  bool in_run() const { return left_out.empty(); }
};

struct MergedRun {
  Trace trace;
  std::vector<MergedFile> files;  // those in the run by rank, then the others by name
};

// Finds, reads and aligns the traces at these paths, each a file, a directory, an archive or a pattern. The readers and
// the rules of load_run() decide about every file. The format of the run is that of the first reader in the table that
// recognises any file. The run is the job with the most files. The longest of several copies of one recording is taken.
// If several files of another tool hold one rank, the first by name is taken. Files of other formats add to the ranks
// as in load_run() (sources.h). Throws Error, naming the remedy, where no
// file is left, where the clocks cannot be aligned as chosen, and where `progress` returned false. Cost: that of
// load_run().
MergedRun load_merged(std::span<const std::filesystem::path> paths, const MergeChoices& choices = {},
                      const Progress& progress = {}, TraceReaders readers = trace_readers());

// Loads a RUN as load_run() of load.h does, with the clocks aligned by a method. Throws Error, naming the remedy, where
// the files do not allow the method.
Trace load_run(const RunPaths& run, ClockMethod clock, const Progress& progress = {});

// The method of this name: "auto", "recorded", "exchange" or "collectives"; nothing for any other text.
std::optional<ClockMethod> clock_method_named(const std::string& name);

}  // namespace paceline::analysis
