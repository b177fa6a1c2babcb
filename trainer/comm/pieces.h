// SPDX-License-Identifier: Apache-2.0
// How our own algorithms cut their messages.
#pragma once

#include <cstddef>

namespace paceline::train {

constexpr std::size_t piece_bytes = std::size_t{256}
                                    << 10;  // so that sums are still in the cache when they are sent on
constexpr std::size_t receives_ahead = 3;

}  // namespace paceline::train
