// Makes the model out of .pace files, one a process.
#pragma once

#include <vector>

#include "analysis/load/load.h"
#include "analysis/trace/trace.h"
#include "profiler/format/reader.h"

namespace paceline::analysis {

// `files` are those of one run; their events are freed on the way. Ranks without a number get the free ones, in the
// order of their starts; of several processes of one rank (a script and the program it started) the one with the most
// events is taken and the others are noted (Trace::notes). Throws Error where the files are of different jobs.
// Cost: linear in the events.
Trace import_pace(std::vector<format::TraceFile> files, const Progress& progress = {});

}  // namespace paceline::analysis
