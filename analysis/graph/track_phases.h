// SPDX-License-Identifier: Apache-2.0
// The phase of each stretch of a track: of the main thread as in the rank's phases, of helper threads and streams by
// their slices.
#pragma once

#include <functional>

#include "analysis/graph/dependencies.h"
#include "analysis/phases/phases.h"

namespace paceline::analysis {

// Calls visit(interval) for each stretch with a phase, in order; time outside all slices of another track than the main
// thread has none. A slice without a phase of its own takes that of the slice around it. Work on a stream takes the
// main thread's phase at its launch. Cost: linear in the slices of the track that begin before until_ns; of a stream,
// also in those of the main thread.
void each_phase_of(const RunIndex& index, const TrackDependencies& track, std::int64_t until_ns,
                   const std::function<void(const PhaseInterval&)>& visit);

}  // namespace paceline::analysis
