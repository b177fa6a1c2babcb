// SPDX-License-Identifier: Apache-2.0
// Accuracy and loss on the test set, exact for any number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/comm/collectives.h"
#include "trainer/data/image_source.h"
#include "trainer/data/loader.h"
#include "trainer/nn/model.h"

namespace paceline::train {

struct Job;

// Scores the test images of a job after `iteration`, and marks the accuracy in the profile. Throws AgreedError if the
// loss is not finite or no image could be read. A collective call.
Score evaluate(Job& job, std::uint64_t iteration);

// Each rank scores its own part of the samples, and the sums are added up, so that each sample counts once. Samples
// that cannot be read are left out if `loading` has a place to note them. The result is the same on all ranks. batch:
// at most the model's batch size. Of `loading`, its workers, bad images and progress are used.
Score evaluate(Model& model, Collectives& collectives, const ImageSource& data, std::size_t batch,
               Loader::Options loading = {});

// The running statistics averaged over the ranks, in float64. A collective call.
std::vector<float> mean_statistics(Model& model, Collectives& collectives);

// The score summed over the ranks. A collective call.
Score sum_over_ranks(Collectives& collectives, const Score& own);

}  // namespace paceline::train
