// SPDX-License-Identifier: Apache-2.0
// Start-up of a training run.
#pragma once

#include <memory>

#include "trainer/run/job.h"

namespace paceline::train {

// Loads the data, builds the model and gives every rank the weights of rank 0 or of the checkpoint. A collective call;
// an error on any rank is thrown as AgreedError on all of them.
std::unique_ptr<Job> start_up(const TrainOptions& options, const Surroundings& surroundings);

}  // namespace paceline::train
