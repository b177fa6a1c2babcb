// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/synthetic.h"

#include <algorithm>

#include "trainer/core/random.h"

namespace paceline::train {
namespace {

Dataset synthesize(const SyntheticOptions& options, std::size_t samples, std::uint64_t part) {
  Dataset data;
  data.image_size = options.image_size;
  data.classes = options.classes;
  const std::size_t stored = synthetic_images(samples);
  data.pixels.resize(stored * data.image_bytes());
  std::vector<std::int32_t> label_of_stored(stored);
  const std::size_t plane = static_cast<std::size_t>(options.image_size * options.image_size);
  for (std::size_t image = 0; image < stored; ++image) {
    Random random{synthesizing, options.seed, part, image};
    const std::uint64_t label = random.below(static_cast<std::uint64_t>(options.classes));
    label_of_stored[image] = static_cast<std::int32_t>(label);
    Random colours{synthesizing, options.seed, 2, label};  // part 2: shared by training and test images
    std::uint8_t* pixel = data.pixels.data() + image * data.image_bytes();
    for (std::int64_t channel = 0; channel < data.channels; ++channel) {
      const auto base = static_cast<std::uint8_t>(colours.below(128));
      for (std::size_t i = 0; i < plane; i += 8) {
        const std::uint64_t bits = random.bits();
        for (std::size_t k = 0; k < std::min<std::size_t>(8, plane - i); ++k) {
          *pixel++ = static_cast<std::uint8_t>(base + ((bits >> (8 * k)) & 127));
        }
      }
    }
  }
  data.labels.resize(samples);
  for (std::size_t sample = 0; sample < samples; ++sample) data.labels[sample] = label_of_stored[sample % stored];
  return data;
}

}  // namespace

std::size_t synthetic_images(std::size_t samples) { return std::min<std::size_t>(samples, 256); }

TrainAndTest synthetic_data(const SyntheticOptions& options) {
  return {synthesize(options, options.train, 0), synthesize(options, options.test, 1)};
}

}  // namespace paceline::train
