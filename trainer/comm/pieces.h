// How the algorithms of our own cut what they send.
#pragma once

#include <cstddef>

namespace paceline::train {

constexpr std::size_t piece_bytes = std::size_t{256} << 10;  // what has been added lies in the cache when it is sent on
constexpr std::size_t receives_ahead = 3;

}  // namespace paceline::train
