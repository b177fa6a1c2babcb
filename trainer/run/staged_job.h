// SPDX-License-Identifier: Apache-2.0
// How a job builds its pipeline, and the state of the whole network on rank 0.
#pragma once

#include <memory>
#include <vector>

#include "trainer/run/job.h"

namespace paceline::train {

// Cuts the network into stages as the options ask. options: of a microbatch. A collective call; throws AgreedError.
std::unique_ptr<StagedRun> split_network(Job& job, const ModelOptions& options);

// Makes this rank's models and its pipeline. It does not communicate.
void make_stage(Job& job);

// On rank 0 the whole network with the weights of all stages and the statistics of the first replica; null on the other
// ranks. A collective call.
std::unique_ptr<Model> gather_model(Job& job);

// After rank 0 has filled the whole model and state from a file: gives each stage its part. A collective call.
void scatter_model(Job& job);

// Running statistics averaged over the replicas: those of the whole network on rank 0, nothing on the other ranks. A
// collective call.
std::vector<float> gather_mean_statistics(Job& job);

}  // namespace paceline::train
