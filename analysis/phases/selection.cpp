// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/selection.h"

#include <algorithm>

#include "analysis/statistics/statistics.h"
#include "analysis/statistics/sum.h"

namespace paceline::analysis {
const Iteration* iteration_at(std::span<const Iteration> iterations, std::int64_t time_ns) {
  const auto after = std::partition_point(iterations.begin(), iterations.end(),
                                          [&](const Iteration& iteration) { return iteration.start_ns <= time_ns; });
  if (after == iterations.begin()) return nullptr;
  const Iteration& iteration = *std::prev(after);
  return time_ns < iteration.start_ns + iteration.duration_ns ? &iteration : nullptr;
}

DurationStatistics durations_of(const Trace& trace, std::span<const Track> tracks, NameId name) {
  std::vector<std::int64_t> durations;
  for (const Track& track : tracks) {
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      if (trace.kind_of(track.slices, i).name == name) durations.push_back(track.slices.duration_ns[i]);
    }
  }
  DurationStatistics statistics;
  if (durations.empty()) return statistics;
  statistics.count = durations.size();
  for (const std::int64_t duration : durations) add_to_sum(statistics.total_ns, duration);
  const auto [shortest, longest] = std::minmax_element(durations.begin(), durations.end());
  statistics.minimum_ns = *shortest;
  statistics.maximum_ns = *longest;
  statistics.median_ns = median(durations);
  statistics.p95_ns = quantile(durations, 0.95);
  return statistics;
}

}  // namespace paceline::analysis
