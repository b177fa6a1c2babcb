// SPDX-License-Identifier: Apache-2.0
// The measured cost of each part of a network, by which a pipeline is balanced.
#pragma once

#include <vector>

#include "trainer/comm/collectives.h"
#include "trainer/nn/model.h"
#include "trainer/pipeline/partition.h"

namespace paceline::train {

// The seconds that each of these runs takes to compute and to differentiate a batch of options.batch_size images. The
// ranks share the measurements, with one run in memory at a time, and all get the same numbers. A collective call;
// throws AgreedError.
std::vector<double> measured_costs(Collectives& ranks, const Network& network, const std::vector<LayerRun>& runs,
                                   const ModelOptions& options);

}  // namespace paceline::train
