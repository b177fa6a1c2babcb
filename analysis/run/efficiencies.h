// SPDX-License-Identifier: Apache-2.0
// How well the ranks of a run use their time: the efficiencies of the POP Centre of Excellence
// (co-design.pop-coe.eu/metrics), over the iterations that all ranks finished.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/run/rank_summary.h"

namespace paceline::analysis {

// With u the useful time of a rank and T the time of the iterations: parallel = avg(u)/T = load balance avg(u)/max(u) ×
// communication max(u)/T. Useful is everything but communication and idle. Each is between 0 and 1.
struct Efficiencies {
  double parallel = 0, load_balance = 0, communication = 0;
  std::vector<std::int64_t> useful_ns;  // of each rank
};

// Nothing for one rank, without common iterations, and where the work of a GPU hides what the main thread waited for.
// `numbers` are those of the iterations, rising. Cost: linear in the iterations of all ranks.
std::optional<Efficiencies> efficiencies_of(std::span<const RankSummary> ranks, std::span<const std::int64_t> numbers);

}  // namespace paceline::analysis
