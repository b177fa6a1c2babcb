// SPDX-License-Identifier: Apache-2.0
// The verdict of a run that hangs, lost events, is damaged or did not end well: why its figures are not to be relied
// on.
#pragma once

#include <string>

#include "analysis/report/report.h"

namespace paceline::analysis {

// What to repair before anything else, a sentence; "" where the run is whole. `details` says where to look.
std::string repair_text(const RunAnalysis& run, bool details);

// What happened, a sentence. Of a hang, the first eight ranks or ranges of ranks that did not come, in few words.
std::string state_of_broken(const Report& report, const RunAnalysis& run);

}  // namespace paceline::analysis
