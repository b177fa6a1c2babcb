// SPDX-License-Identifier: Apache-2.0
// The optimizer's state of a run whose ranks have a shard of it each, as one whole on rank 0. Checkpoints hold the
// whole state, so that a run on another number of ranks can resume.
#pragma once

#include <memory>

#include "trainer/comm/collectives.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train {

// Whether the optimizer was made for a part of `elements` values.
bool is_shard(const Optimizer& optimizer, std::size_t elements);

// Room for the whole state of optimizers like this shard. It takes no steps.
std::unique_ptr<Optimizer> whole_state_of(Optimizer& shard, std::size_t elements);

// Collects the shards of all ranks in `whole` on rank 0, where it is not null. A collective call.
void gather_state(Collectives& ranks, Optimizer& shard, Optimizer* whole);

// Gives each rank its shard of `whole`, which is only used on rank 0. A collective call.
void scatter_state(Collectives& ranks, Optimizer* whole, Optimizer& shard);

}  // namespace paceline::train
