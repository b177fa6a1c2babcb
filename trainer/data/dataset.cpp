#include "trainer/data/dataset.h"

#include <algorithm>
#include <cmath>

namespace paceline::train {

Normalization normalization_of(const Dataset& data) {
  Normalization result;
  const std::size_t plane = static_cast<std::size_t>(data.image_size * data.image_size);
  const std::size_t images = data.pixels.size() / data.image_bytes();
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(data.channels); ++channel) {
    std::uint64_t sum = 0, squares = 0;
    for (std::size_t image = 0; image < images; ++image) {
      const std::uint8_t* pixel = data.pixels.data() + image * data.image_bytes() + channel * plane;
      for (std::size_t i = 0; i < plane; ++i) {
        sum += pixel[i];
        squares += static_cast<std::uint64_t>(pixel[i]) * pixel[i];
      }
    }
    const double count = static_cast<double>(std::max<std::size_t>(images * plane, 1));
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    result.mean[channel] = static_cast<float>(mean);
    result.scale[channel] =
        static_cast<float>(1 / std::sqrt(std::max(variance, 1.0)));  // a set of one colour: no blow-up
  }
  return result;
}

}  // namespace paceline::train
