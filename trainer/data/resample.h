// SPDX-License-Identifier: Apache-2.0
// Linear interpolation along one axis of an image.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline::train {

// value = (1 − weight) × pixel[first] + weight × pixel[second]; second is first or first + 1.
struct Tap {
  std::int64_t first = 0, second = 0;
  float weight = 0;
};

// The taps of `count` output pixels that divide [begin, begin + length) of an axis of `pixels` pixels equally, taken at
// their centres: pixel i is the unit from i to i + 1, as in PyTorch's interpolate (align_corners=False) and Pillow.
// Pixels outside of that stretch are not used. `first` ascends over the taps.
std::vector<Tap> linear_taps(double begin, double length, std::int64_t count, std::int64_t pixels);

// Rounds each pixel, 0 to 255, to the nearest byte. Both spans have the same length.
void round_to_bytes(std::span<const float> pixels, std::span<std::uint8_t> bytes);

}  // namespace paceline::train
