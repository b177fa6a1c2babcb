#include "analysis/metrics/gpu.h"

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

}  // namespace paceline::analysis
