// SPDX-License-Identifier: Apache-2.0
// The part of analyse_run() that says why time was lost, for those who show it before the slower parts are there.
#pragma once

#include "analysis/run/index/run_index.h"
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// Sets `causes` of an analysis by analyse_ranks(), unless the run was refused or its threads were not observed. The
// slow iterations are set against the others, and those after a change to slower steps against those before it. Cost:
// that of causes_of().
void add_causes(const RunIndex& index, RunAnalysis& run);

}  // namespace paceline::analysis
