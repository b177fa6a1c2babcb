// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/main_thread.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/phases/phase_rules.h"

namespace paceline::analysis {

void choose_main_threads(Trace& trace) {
  const PhaseTable table(trace);
  for (Rank& rank : trace.ranks) {
    if (main_track(rank) != nullptr) continue;
    Track* best = nullptr;
    std::tuple<std::size_t, bool, std::int64_t> most;
    for (Track& track : rank.tracks) {
      if (track.kind != TrackKind::thread || track.thread_id == 0) continue;
      std::size_t iterations = 0;
      std::int64_t outermost_ns = 0;
      for (std::size_t i = 0; i < track.slices.size(); ++i) {
        if (table.iteration(track.slices.kind[i])) ++iterations;
        if (track.slices.depth[i] == 0) outermost_ns += track.slices.duration_ns[i];
      }
      const bool leads = rank.pid != 0 && track.thread_id == static_cast<std::uint64_t>(rank.pid);
      const std::tuple of(iterations, leads, outermost_ns);
      if (best != nullptr && of <= most) continue;
      best = &track;
      most = of;
    }
    if (best == nullptr) continue;
    best->main = true;
    const std::string label = std::exchange(best->label, "main thread");
    for (Track& track : rank.tracks) {  // slices that cross others are on "LABEL (2)"
      const bool more = track.thread_id == best->thread_id && track.label.starts_with(label + " (");
      if (more) track.label.replace(0, label.size(), best->label);
    }
  }
}

}  // namespace paceline::analysis
