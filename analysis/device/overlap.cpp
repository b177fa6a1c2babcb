// SPDX-License-Identifier: Apache-2.0
#include "analysis/device/overlap.h"

#include <utility>

#include "analysis/phases/phase_rules.h"

namespace paceline::analysis {

std::optional<Overlap> overlap_of(const PhaseTable& table, const Rank& rank, Intervals compute,
                                  const GpuActivity& gpu) {
  if (!gpu.communication.empty()) return overlap_between(gpu.communication, gpu.compute);
  Intervals communication;
  for (const Track& track : rank.tracks) {
    if (track.main) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      if (table.phase(track.slices.kind[i]) == Phase::communication) {
        communication.push_back({track.slices.start_ns[i], track.slices.end_ns(i)});
      }
    }
  }
  if (communication.empty()) return std::nullopt;
  return overlap_between(merged(std::move(communication)), merged(std::move(compute)));
}

}  // namespace paceline::analysis
