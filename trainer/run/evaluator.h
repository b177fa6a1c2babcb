// Accuracy and loss on the test set, exact for any number of ranks.
#pragma once

#include <cstddef>

#include "trainer/comm/communicator.h"
#include "trainer/data/image_source.h"
#include "trainer/data/loader.h"
#include "trainer/nn/model.h"

namespace paceline::train {

// Each rank scores its own part of the samples; the sums and the counts are added up, so nothing is weighted twice and
// no sample is left out or repeated, but for those that cannot be read where `loading` has a place to note them. Same
// result on all ranks. The batch is the largest the model takes. loading: of the loader's options, its workers, where
// bad images are noted and its progress.
Score evaluate(Model& model, Communicator& communicator, const ImageSource& data, std::size_t batch,
               Loader::Options loading = {});

}  // namespace paceline::train
