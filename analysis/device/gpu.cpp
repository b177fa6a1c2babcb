// SPDX-License-Identifier: Apache-2.0
#include "analysis/device/gpu.h"

#include <algorithm>

namespace paceline::analysis {

GpuActivity gpu_activity(const PhaseTable& table, const Rank& rank) {
  const Trace& trace = table.trace();
  GpuActivity activity;
  const NameId kernel = trace.names.find("kernel"), graph = trace.names.find("graph");
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const TimeInterval interval{track.slices.start_ns[i], track.slices.end_ns(i)};
      activity.all.push_back(interval);
      const NameId category = trace.kind_of(track.slices, i).category;
      if (category == 0 || (category != kernel && category != graph)) continue;
      const bool communicates = table.phase(track.slices.kind[i]) == Phase::communication;
      (communicates ? activity.communication : activity.compute).push_back(interval);
    }
  }
  for (Intervals* intervals : {&activity.all, &activity.compute, &activity.communication}) {
    *intervals = merged(std::move(*intervals));
  }
  return activity;
}

std::optional<GpuUsage> gpu_usage(const GpuActivity& activity) {
  if (activity.empty()) return std::nullopt;
  GpuUsage usage;
  usage.span_ns = activity.all.back().end_ns - activity.all.front().start_ns;
  usage.idle_ns = usage.span_ns - total_ns(activity.all);
  usage.compute_ns = total_ns(activity.compute);
  usage.noncompute_ns = usage.span_ns - usage.compute_ns - usage.idle_ns;
  return usage;
}

std::vector<StreamIdle> stream_idle(const Trace& trace, const Rank& rank, const Correlations& correlations) {
  constexpr std::int64_t consecutive_ns = 30;
  const NameId key = trace.names.find("correlation");
  std::vector<StreamIdle> all;
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    StreamIdle idle{.stream = track.label};
    std::optional<std::int64_t> last_end_ns;
    std::size_t pieces = 0;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      if (track.slices.depth[i] > 0) continue;
      const std::int64_t start_ns = track.slices.start_ns[i];
      if (last_end_ns && start_ns > *last_end_ns) {
        const auto correlation = key == 0 ? std::nullopt : track.slices.argument(i, key);
        const auto calls = correlation && correlation->whole() >> 32 == 0
                               ? correlations.calls(static_cast<std::uint32_t>(correlation->whole()))
                               : std::span<const Correlations::Place>();
        const bool late_launch =
            !calls.empty() && rank.tracks[calls[0].track].slices.start_ns[calls[0].slice] > *last_end_ns;
        const std::int64_t gap_ns = start_ns - *last_end_ns;
        (late_launch ? idle.host_wait_ns : gap_ns < consecutive_ns ? idle.kernel_wait_ns : idle.other_ns) += gap_ns;
      }
      last_end_ns = std::max(last_end_ns.value_or(track.slices.end_ns(i)), track.slices.end_ns(i));
      ++pieces;
    }
    if (pieces > 1) all.push_back(std::move(idle));
  }
  return all;
}

}  // namespace paceline::analysis
