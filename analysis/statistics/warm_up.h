// SPDX-License-Identifier: Apache-2.0
// How long a run takes to become steady.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace paceline::analysis {

// MSER-5 (K. P. White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
// 1997): of the means of 5 neighbouring values, leaves out as many at the begin as make the standard error of the
// mean of the rest least. Returns the number of values that this leaves out. Nothing for fewer than 20 values, and
// where that is more than half of them, because the values then never became steady. Cost: linear.
std::optional<std::size_t> mser5_warm_up(std::span<const double> values);

}  // namespace paceline::analysis
