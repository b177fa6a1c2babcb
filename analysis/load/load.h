// Opens a RUN: a directory of rank files, or one file. A reader of the table (readers.h) recognises the format from the
// content, reads the files, aligns their clocks and builds the model.
#pragma once

#include <filesystem>
#include <vector>

#include "analysis/load/readers.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Returns the trace files of a RUN, sorted by name: those directly in a directory, or the file itself. All have one
// format. Throws Error where there are none. Cost: a few bytes read of each file for each reader.
std::vector<TraceFile> trace_files(const std::filesystem::path& path, TraceReaders readers = trace_readers());

// Loads a RUN with its ranks on one clock. In a directory, a file whose header cannot be read is left out and noted
// (Trace::notes) as long as another one can be read. Throws Error, naming the path and the remedy, where nothing can be
// read.
Trace load_run(const std::filesystem::path& path, const Progress& progress = {},
               TraceReaders readers = trace_readers());

}  // namespace paceline::analysis
