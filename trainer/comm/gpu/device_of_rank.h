// SPDX-License-Identifier: Apache-2.0
// The assignment of GPUs to ranks.
#pragma once

#include "trainer/comm/nccl_options.h"
#include "trainer/comm/ranks.h"

namespace paceline::train::nccl {

// Makes the GPU with the number of the rank on its host current for this thread. Throws Error (usage) on all ranks if
// one has no GPU, or if two have the same one without `share`. A collective call over ranks.world.
void use_device_of_rank(const Ranks& ranks, bool share);

// The host and the current GPU of every rank, by rank. A collective call over ranks.world.
std::vector<Placement> placements(const Ranks& ranks);

}  // namespace paceline::train::nccl
