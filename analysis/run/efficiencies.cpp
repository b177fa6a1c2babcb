// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/efficiencies.h"

#include <algorithm>
#include <numeric>

namespace paceline::analysis {

std::optional<Efficiencies> efficiencies_of(std::span<const RankSummary> ranks, std::span<const std::int64_t> numbers) {
  const bool on_gpu = std::ranges::any_of(ranks, [](const RankSummary& rank) { return rank.gpu.has_value(); });
  if (ranks.size() < 2 || numbers.empty() || on_gpu) return std::nullopt;
  Efficiencies out;
  double total = 0;  // mean over ranks of the iterations' time
  for (const RankSummary& rank : ranks) {
    std::int64_t useful = 0, time = 0;
    for (const Iteration& iteration : rank.iterations) {
      if (!iteration.finished || !std::ranges::binary_search(numbers, iteration.number)) continue;
      time += iteration.duration_ns;
      useful += iteration.duration_ns - iteration.phase_ns[static_cast<std::size_t>(Phase::communication)] -
                iteration.phase_ns[static_cast<std::size_t>(Phase::idle)];
    }
    out.useful_ns.push_back(useful);
    total += static_cast<double>(time) / static_cast<double>(ranks.size());
  }
  const auto largest = static_cast<double>(*std::ranges::max_element(out.useful_ns));
  const double mean =
      std::accumulate(out.useful_ns.begin(), out.useful_ns.end(), 0.0) / static_cast<double>(ranks.size());
  if (!(total > 0) || !(largest > 0)) return std::nullopt;
  // The busiest rank may have longer iterations than the mean over ranks.
  out.communication = std::min(largest / total, 1.0);
  out.load_balance = mean / largest;
  out.parallel = out.load_balance * out.communication;
  return out;
}

}  // namespace paceline::analysis
