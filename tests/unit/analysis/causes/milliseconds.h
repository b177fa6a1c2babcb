// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace paceline::analysis {

inline constexpr std::int64_t ms = 1'000'000;  // ns

}  // namespace paceline::analysis
