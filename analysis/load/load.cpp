// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/load.h"

#include "analysis/clocks/trace_alignment.h"
#include "analysis/load/rank_numbers.h"
#include "analysis/load/sources.h"
#include "profiler/format/error.h"

namespace paceline::analysis {

namespace loading {

constexpr double unpacking_share = 0.3;  // of the time, where files are unpacked

}  // namespace loading

Trace load_files(const RunFiles& run, const Progress& progress) {
  try {
    constexpr double share_of_run = 0.6;
    const bool alone = run.others.empty();
    Trace trace = run.reader->read(run.files, progress.from_to(0, alone ? 1 : share_of_run));
    if (!run.reader->whole_runs) {
      number_ranks(trace);
      align_ranks(trace);
    }
    add_sources(trace, run, progress.from_to(share_of_run, 1));
    for (Rank& rank : trace.ranks) rank.path = run.with_names(std::move(rank.path));
    for (std::string& note : trace.notes) note = run.with_names(std::move(note));
    trace.notes.insert(trace.notes.begin(), run.notes.begin(), run.notes.end());
    return trace;
  } catch (const Error& error) {
    throw Error(run.with_names(error.what()));
  }
}

Trace load_run(const RunPaths& paths, const Progress& progress, TraceReaders readers) {
  const RunFiles run = find_run_files(paths, progress.from_to(0, loading::unpacking_share), readers);
  return load_files(run, progress.from_to(run.unpacked.empty() ? 0 : loading::unpacking_share, 1));
}

}  // namespace paceline::analysis
