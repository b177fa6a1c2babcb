// SPDX-License-Identifier: Apache-2.0
// When and how a run writes its checkpoint and goes on from one.
#pragma once

#include <cstdint>

#include "trainer/run/job.h"

namespace paceline::train {

// On rank 0: fills model, optimizer (or its whole state, if it is a shard) and job.resumed from the checkpoint, if the
// run resumes and the file exists, and sets job.first_iteration. Throws Error.
void read_state(Job& job);

// Gives rank 0's weights, statistics, optimizer state and position to all ranks. A collective call.
void share_state(Job& job);

// Throws AgreedError if a rank's state holds a value that is not finite: no checkpoint may keep it. A collective call.
void check_state(Job& job, std::uint64_t iteration);

// Writes the checkpoint of a run that has done `done` iterations; check_state() comes first. A collective call.
// best: keeps it as FILE.best as well.
void save_state(Job& job, std::uint64_t done, bool best = false);

}  // namespace paceline::train
