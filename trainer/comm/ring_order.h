// SPDX-License-Identifier: Apache-2.0
// The order of ranks in a ring. Neighbours send to each other, so the order decides how often messages cross a slow
// link.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/ranks.h"

namespace paceline::train {

// Parses "0,2,1,3", the rank at each place. An empty text means the order of the ranks and gives an empty list. Throws
// Error (usage) unless each of `size` ranks is named once.
std::vector<int> parse_ring_order(const std::string& text, int size);

// The place of a rank. An empty order means the order of the ranks.
int place_in_ring(const std::vector<int>& order, int rank);

// The same ranks, numbered by their places. A collective call over ranks.world.
std::unique_ptr<Ranks> in_ring_order(const Ranks& ranks, const std::vector<int>& order);

}  // namespace paceline::train
