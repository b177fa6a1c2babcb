// Makes the model from .pace files, one for each process.
#pragma once

#include <vector>

#include "analysis/importers/pace/events.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// `files` are those of one run. Ranks without a number get the free ones, in the order of their starts; which process
// belongs to which rank: processes.h. What was left out is noted (Trace::notes). Ranks are imported in parallel. Throws
// Error where the files are of different jobs. Cost: linear in the events.
Trace import_pace(std::vector<PaceEvents> files, const Progress& progress = {});
// The same for files in memory.
Trace import_pace(std::vector<format::TraceFile> files, const Progress& progress = {});

}  // namespace paceline::analysis
