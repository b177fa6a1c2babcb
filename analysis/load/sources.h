// SPDX-License-Identifier: Apache-2.0
// One run from several sources: what files of other formats hold of the same ranks.
#pragma once

#include <vector>

#include "analysis/load/run_files.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Adds RunFiles::others to the ranks of the run that have the same numbers. The clocks of a rank's sources are compared
// by the slices that both have (the same name, equally often), else by UTC; a rank that neither puts into the
// run's time is left out. What the run has already is left out as well: GPU work, NCCL calls, MPI calls and counters in
// the time that the run has them, and slices of threads with the same name at the same time. Tracks are labelled with
// their format. Facts, notes and damage are kept. Notes say what came from where, how good the clock is, and what was
// left out. Returns the readers whose files added nothing. Throws Error where `progress` returned false. Cost: that of
// loading the files, and linear in the slices.
std::vector<const TraceReader*> add_sources(Trace& run, const RunFiles& files, const Progress& progress = {});

}  // namespace paceline::analysis
