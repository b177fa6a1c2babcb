// SPDX-License-Identifier: Apache-2.0
// Images and labels in memory, as bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace paceline::train {

struct Dataset {
  std::int64_t image_size = 32;  // pixels on each side
  std::int64_t channels = 3;
  std::int64_t classes = 10;
  std::vector<std::int32_t> labels;  // one for each sample
  std::vector<std::uint8_t> pixels;  // image after image, each channels × height × width

  std::size_t size() const { return labels.size(); }
  std::size_t image_bytes() const { return static_cast<std::size_t>(channels * image_size * image_size); }

  // A set may store fewer images than it has samples and repeat them (synthetic data of any length fits in memory).
  std::span<const std::uint8_t> image(std::size_t sample) const {
    const std::size_t stored = pixels.size() / image_bytes();
    return {pixels.data() + (sample % stored) * image_bytes(), image_bytes()};
  }
};

// Throws Error if there is no such directory, or if it is a file.
void require_directory(const std::filesystem::path& directory);

struct TrainAndTest {
  Dataset train, test;
};

// The samples that a fraction of a set keeps, in order: the first ones of each class, rounded, at least one. fraction:
// above 0, at most 1.
std::vector<std::uint32_t> first_of_each_class(std::span<const std::int32_t> labels, double fraction);

// Keeps that fraction of a set that stores all its images.
void keep_fraction(Dataset& data, double fraction);

// Per channel: (byte − mean) × scale has mean 0 and variance 1 over the set.
struct Normalization {
  std::array<float, 3> mean{}, scale{};
};

// Computed over all pixels in integers, hence exact. At most three channels.
Normalization normalization_of(const Dataset& data);

}  // namespace paceline::train
