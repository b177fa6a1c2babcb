// A run in other tools' forms.
#pragma once

#include <cstdio>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The Trace Event Format (JSON object form), which Perfetto and chrome://tracing open: a process for each rank, a
// thread for each track, slices as complete events, marks as instants; times in µs with three decimals, so none is
// lost. Throws Error where `out` takes no more. Cost: linear.
void export_chrome(const Trace& trace, std::FILE* out);

// One line a slice or mark, with the header
//   rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args
// quoted after RFC 4180; kind is "slice" or "mark"; args is a JSON object, with the NVTX domain under "domain".
void export_csv(const Trace& trace, std::FILE* out);

}  // namespace paceline::analysis
