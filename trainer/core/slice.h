// SPDX-License-Identifier: Apache-2.0
// Parts of an array.
#pragma once

#include <cstddef>

namespace paceline::train {

// Positions [first, first + count) of an array.
struct Slice {
  std::size_t first = 0, count = 0;
};

// Cuts `count` positions into `parts` slices whose lengths differ by at most one, and returns slice `index`. Each slice
// of a cut into k parts is a union of slices of a cut into a multiple of k.
inline Slice slice_of(std::size_t count, std::size_t parts, std::size_t index) {
  const std::size_t first = count / parts * index + count % parts * index / parts;
  const std::size_t next = count / parts * (index + 1) + count % parts * (index + 1) / parts;
  return {first, next - first};
}

}  // namespace paceline::train
