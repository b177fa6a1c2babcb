// Which GPU a rank has.
#pragma once

#include "trainer/comm/gpu/options.h"
#include "trainer/comm/ranks.h"

namespace paceline::train::nccl {

// Makes the rank's GPU current for this thread: that of its number on its host. Throws Error (usage) on all ranks where
// one has no GPU, or where two have the same one and do not `share`. A collective call over ranks.world.
void use_device_of_rank(const Ranks& ranks, bool share);

// Where every rank is, by rank: its host and the current GPU of the calling thread. A collective call over ranks.world.
std::vector<Placement> placements(const Ranks& ranks);

}  // namespace paceline::train::nccl
