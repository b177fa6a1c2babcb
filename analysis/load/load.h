// Opens a RUN: a directory of rank files, one file, or a foreign trace; the format is recognised from the content.
#pragma once

#include <filesystem>
#include <vector>

#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The trace files that a RUN stands for, sorted by name: those directly in a directory, or the file itself. Throws
// Error where there are none. Cost: 8 bytes read of each file.
std::vector<std::filesystem::path> trace_files(const std::filesystem::path& path);

// Throws Error, naming the path and the remedy, where nothing can be read. Ranks are put on one clock. In a directory,
// a file whose header cannot be read is left out and noted (Trace::notes) as long as another one can.
Trace load_run(const std::filesystem::path& path, const Progress& progress = {});

}  // namespace paceline::analysis
