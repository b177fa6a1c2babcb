// SPDX-License-Identifier: Apache-2.0
// Finds the trace files of a RUN: one or several directories, one file, an archive, or a pattern such as
// "run4/rank-*.json.gz".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/load/readers.h"
#include "analysis/load/run_paths.h"
#include "analysis/load/scratch_folder.h"
#include "analysis/trace/progress.h"

namespace paceline::analysis {

struct RunFiles {
  const TraceReader* reader = nullptr;  // of all the files
  std::vector<TraceFile> files;         // sorted by name, at least one
  std::vector<std::string> notes;       // what was left out, for people

  // Files of another format, which tell more of the same ranks (sources.h).
  struct Source {
    const TraceReader* reader = nullptr;
    std::vector<TraceFile> files;  // sorted by name, at least one
  };
  std::vector<Source> others;  // in the order of the table

  // Replaces the paths of unpacked files and of the temporary folder by the names that the user knows.
  std::string with_names(std::string text) const;

  std::unique_ptr<ScratchFolder> scratch;  // has the files that were unpacked; or none were
  std::vector<TraceFile> unpacked;         // files, and the folders of archives, in the temporary folder
};

// Finds the files of a RUN and unpacks what is compressed. Of a directory the files directly in it count; archives in
// it only if nothing else is a trace. Of an archive all regular files count. The format of the
// run is that of the first reader in the table that recognises any of them; the others are further sources. Throws
// Error where there are no traces, or where `progress` returned false. Cost: a few bytes of each file for each reader,
// and the unpacking.
RunFiles find_run_files(const RunPaths& run, const Progress& progress = {}, TraceReaders readers = trace_readers());

}  // namespace paceline::analysis
