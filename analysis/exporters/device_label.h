// SPDX-License-Identifier: Apache-2.0
// Which device and stream a track's label names.
#pragma once

#include <charconv>
#include <string_view>

namespace paceline::analysis {

struct DeviceLabel {
  int device = 0, stream = 0;
};

// "GPU 0 stream 7" -> {0, 7}. A number that the label does not have is 0 for the device and `unknown` for the stream.
inline DeviceLabel device_label(std::string_view label, int unknown) {
  DeviceLabel found{0, unknown};
  const auto read = [&](std::string_view word, int& number) {
    const std::size_t at = label.find(word);
    if (at != std::string_view::npos)
      std::from_chars(label.data() + at + word.size(), label.data() + label.size(), number);
  };
  read("GPU ", found.device);
  read(" stream ", found.stream);
  return found;
}

}  // namespace paceline::analysis
