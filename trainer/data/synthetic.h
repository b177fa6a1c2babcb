// SPDX-License-Identifier: Apache-2.0
// Random images in memory, of any size and number of classes, for measuring speed without a data set on disk.
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

// The number of samples that are stored; they are repeated.
std::size_t synthetic_images(std::size_t samples);

// Noise over a colour that belongs to the class, so that a network has something to learn. Of each set,
// synthetic_images() images are in memory.
TrainAndTest synthetic_data(const SyntheticOptions& options);

}  // namespace paceline::train
