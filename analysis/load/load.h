// SPDX-License-Identifier: Apache-2.0
// Opens a RUN: a directory of rank files (or one from each host), one file, an archive or a pattern. A reader of the
// table (readers.h) recognises the format from the content, reads the files and builds the model. Where the format
// leaves that open, the ranks are then numbered (rank_numbers.h) and put on one clock (clocks/trace_alignment.h). Files
// of other formats add what they hold of the same ranks (sources.h).
#pragma once

#include <filesystem>

#include "analysis/load/readers.h"
#include "analysis/load/run_files.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Loads a RUN with its ranks on one clock. In a directory, a file whose header cannot be read is left out and noted
// (Trace::notes) as long as another one can be read. What was unpacked is removed before it returns. Throws Error,
// naming the path and the remedy, where nothing can be read or where `progress` returned false.
Trace load_run(const RunPaths& run, const Progress& progress = {}, TraceReaders readers = trace_readers());

// The same for files that were found already.
Trace load_files(const RunFiles& run, const Progress& progress = {});

}  // namespace paceline::analysis
