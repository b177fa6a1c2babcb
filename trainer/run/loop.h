// SPDX-License-Identifier: Apache-2.0
// The training loop.
#pragma once

#include "trainer/run/job.h"

namespace paceline::train {

// Runs all iterations, evaluations and checkpoints of a started job. Throws AgreedError on all ranks if the loss is not
// finite or the job is interrupted. Any other exception concerns this rank alone, while the others wait for it: the
// caller must abort the job.
void train(Job& job);

}  // namespace paceline::train
