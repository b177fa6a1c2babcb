// A run in other tools' forms.
#pragma once

#include <cstdio>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The Trace Event Format (JSON object form), which Perfetto and chrome://tracing open: a process for each rank, a
// thread for each track, slices as complete events, marks as instants, counters as counter events (a sum as what it
// rose by per second, from each sample to the next); times in µs with three decimals, so none is lost. Throws Error
// where `out` takes no more. Cost: linear.
void export_chrome(const Trace& trace, std::FILE* out);

// One line a slice, mark or sample, with the header
//   rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args
// quoted after RFC 4180; kind is "slice", "mark" or "counter"; args is a JSON object, with the NVTX domain under
// "domain", and of a sample "value", "unit", "sum" (true: it is a sum since the first sample).
void export_csv(const Trace& trace, std::FILE* out);

}  // namespace paceline::analysis
