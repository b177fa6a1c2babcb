// SPDX-License-Identifier: Apache-2.0
// Joins traces.
#pragma once

#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The ranks of `source` with the names, kinds, stacks and communicators of `trace`, which get those that it lacks; to
// be added to its ranks or to their tracks. Defined beside the builder. Cost: linear in the slices of `source`.
std::vector<Rank> adopt_ranks(Trace source, Trace& trace);

}  // namespace paceline::analysis
