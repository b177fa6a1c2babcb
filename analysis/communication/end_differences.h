// SPDX-License-Identifier: Apache-2.0
// When ranks leave their collectives, beside each other: what shows that a clock is wrong.
#pragma once

#include <cstddef>
#include <vector>

#include "analysis/communication/collectives.h"

namespace paceline::analysis {

// Of each rank: the end of a collective minus the median end over its ranks, in ns, mean over the collectives that all
// ranks took part in and leave together, however late one of them came: blocking ones with a result on each rank. A
// clock that is ahead moves starts and ends alike, and lateness moves the starts alone. Empty without such a
// collective. Cost: linear in the calls.
std::vector<double> end_differences(const Collectives& collectives, std::size_t ranks);

}  // namespace paceline::analysis
