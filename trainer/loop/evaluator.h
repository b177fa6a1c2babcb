// Accuracy and loss on the test set, exact for any number of ranks.
#pragma once

#include <cstddef>

#include "trainer/comm/communicator.h"
#include "trainer/data/image_source.h"
#include "trainer/nn/model.h"

namespace paceline::train {

// Each rank scores its own part of the samples; the sums and the counts are added up, so nothing is weighted twice and
// no sample is left out or repeated. Same result on all ranks. The batch is the largest the model
// takes; workers: threads that prepare it.
Score evaluate(Model& model, Communicator& communicator, const ImageSource& data, std::size_t batch,
               std::size_t workers = 1);

}  // namespace paceline::train
