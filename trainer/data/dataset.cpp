// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/core/error.h"

namespace paceline::train {

void require_directory(const std::filesystem::path& directory) {
  std::error_code code;
  if (std::filesystem::is_directory(directory, code)) return;
  if (std::filesystem::is_regular_file(directory, code)) {
    throw Error(directory.string(), "is a file", "give its directory to ‹data›");
  }
  throw Error(directory.string(), "no such data set directory",
              "draw one with: paceline-train make-dataset " + directory.string());
}

std::vector<std::uint32_t> first_of_each_class(std::span<const std::int32_t> labels, double fraction) {
  std::vector<std::int64_t> left;  // samples to keep of each class
  for (const std::int32_t label : labels) {
    const auto of_class = static_cast<std::size_t>(label);
    if (of_class >= left.size()) left.resize(of_class + 1);
    ++left[of_class];
  }
  for (std::int64_t& count : left) {
    count = std::max<std::int64_t>(1, std::llround(static_cast<double>(count) * fraction));
  }
  std::vector<std::uint32_t> kept;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    if (left[static_cast<std::size_t>(labels[sample])]-- > 0) kept.push_back(static_cast<std::uint32_t>(sample));
  }
  return kept;
}

void keep_fraction(Dataset& data, double fraction) {
  Dataset kept;
  for (const std::uint32_t sample : first_of_each_class(data.labels, fraction)) {
    const auto image = data.image(sample);
    kept.labels.push_back(data.labels[sample]);
    kept.pixels.insert(kept.pixels.end(), image.begin(), image.end());
  }
  data.labels = std::move(kept.labels);
  data.pixels = std::move(kept.pixels);
}

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
        static_cast<float>(1 / std::sqrt(std::max(variance, 1.0)));  // avoids a division by 0 for a set of one colour
  }
  return result;
}

}  // namespace paceline::train
