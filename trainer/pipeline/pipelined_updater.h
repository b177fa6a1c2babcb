// SPDX-License-Identifier: Apache-2.0
// The updater of a pipeline: each stage's gradients are averaged over the replicas, and each rank takes the step for
// its stage's weights.
#pragma once

#include <memory>

#include "trainer/pipeline/pipeline.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {

// parts: the model and the optimizer are those of this rank's stage, the communicator's collective calls go over all
// ranks of the job, and its reduction goes over the replicas of this stage. The pipeline must outlive the updater.
std::unique_ptr<Updater> make_pipelined_updater(const UpdaterParts& parts, Pipeline& pipeline, int replicas);

}  // namespace paceline::train
