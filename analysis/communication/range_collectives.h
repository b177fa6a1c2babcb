// SPDX-License-Identifier: Apache-2.0
// Allreduces for which the trace has only NVTX ranges, no recorded collective call: algorithms that consist of
// messages, of calls on parts of the ranks, or of copies in shared memory.
#pragma once

#include <vector>

#include "analysis/communication/collective_calls.h"

namespace paceline::analysis {

// Adds the ranges of a rank with the category "allreduce" and a payload as calls with `of_range`, unless calls inside
// them move as much: then these are the collectives. A small call at the end of a range (the ranks agree on the loss)
// does not belong to it. Cost: linear in the slices.
void add_range_calls(CollectiveCalls& calls, const Trace& trace, const Rank& rank);

// Takes such calls away again unless all ranks make one collective together: each has as many ranges of one name, of
// equal sizes in the order of their starts, and in at most a tenth of them a rank goes on before all have come (wrong
// clocks may explain these). The ranks of a parameter server exchange gradients without waiting for each other. Cost:
// linear in the calls.
void keep_common_ranges(std::vector<CollectiveCalls>& ranks);

}  // namespace paceline::analysis
