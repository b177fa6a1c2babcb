// SPDX-License-Identifier: Apache-2.0
// Evaluations and checkpoints that one rank does alone while the others wait for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/communication/collectives.h"
#include "analysis/run/rank_summary.h"

namespace paceline::analysis {

struct LoneInterludes {
  std::size_t rank = 0;  // an index
  Phase phase = Phase::evaluate;
  std::size_t count = 0;
  std::int64_t ns = 0;         // of all of them
  std::int64_t waited_ns = 0;  // for this rank in collectives, until they are settled; mean over the other ranks
};

// Of each of the phases `evaluate` and `checkpoint`, where the others have at most a twentieth of the rank's time and
// wait for it. This is measured time, so it needs no test. Cost: linear in the intervals in which ranks were blocked,
// times log of the interludes.
std::vector<LoneInterludes> lone_interludes(std::span<const RankSummary> ranks, const Collectives& collectives);

}  // namespace paceline::analysis
