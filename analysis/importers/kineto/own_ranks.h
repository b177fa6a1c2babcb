// SPDX-License-Identifier: Apache-2.0
// Chrome JSON with several ranks in one file: a process for each, named "rank 3 (node17)" by Paceline's own export, and
// "Rank 3" or "MPI rank 3 of 8" by others.
#pragma once

#include <string>

#include "analysis/trace/trace.h"

namespace paceline::analysis::kineto {

// What the label of a track, or the device of a counter, begins with until split_own_ranks(). Empty where the process's
// name has no rank.
std::string rank_prefix(const std::string& process_name);

// Makes ranks out of a rank whose tracks have such prefixes, and adds them to the list. Other ranks are added as they
// are.
void split_own_ranks(Rank rank, std::vector<Rank>& ranks);

}  // namespace paceline::analysis::kineto
