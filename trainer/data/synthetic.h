// Images made up in memory, of any size and number of classes: for measuring speed without a data set on disk.
#pragma once

#include <cstdint>

#include "trainer/data/dataset.h"

namespace paceline::train {

struct SyntheticOptions {
  std::int64_t image_size = 32;
  std::int64_t classes = 10;
  std::size_t train = 2048, test = 512;  // samples
  std::uint64_t seed = 1;
};

// Noise over a colour that belongs to the class, so that a network has something to learn. At most a few hundred images
// are stored and repeated, whatever the number of samples.
TrainAndTest synthetic_data(const SyntheticOptions& options);

}  // namespace paceline::train
