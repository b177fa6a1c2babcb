// SPDX-License-Identifier: Apache-2.0
// Communication hidden under compute.
//
// overlap = (merged communication ∩ merged compute) ÷ merged communication (Holistic Trace Analysis's definition).
// If the streams of a rank have communication kernels, both are kernels on its streams (gpu.h). Otherwise,
// communication is the time that threads other than the main thread spend in the communication phase, and compute is
// the forward, backward and optimizer of the main thread.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/device/gpu.h"
#include "analysis/phases/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct Overlap {
  std::int64_t communication_ns = 0;  // union over tracks
  std::int64_t hidden_ns = 0;         // the part of it under compute
  std::int64_t exposed_ns() const { return communication_ns - hidden_ns; }
};

// Of merged intervals. Linear.
inline Overlap overlap_between(const Intervals& communication, const Intervals& compute) {
  return {total_ns(communication), total_ns(common(communication, compute))};
}

// Nothing if no communication runs beside the main thread. `compute`: the main thread's forward, backward and
// optimizer, in order. Cost: n log n in the communication slices.
std::optional<Overlap> overlap_of(const PhaseTable& table, const Rank& rank, Intervals compute, const GpuActivity& gpu);

// True of the phases in which the main thread does work of its own, so that a helper thread that communicates does not
// block the rank.
inline bool works(Phase phase) {
  return phase != Phase::startup && phase != Phase::communication && phase != Phase::idle && phase != Phase::other;
}

// True of the phases that hide communication which other threads do.
inline bool is_compute(Phase phase) {
  return phase == Phase::forward || phase == Phase::backward || phase == Phase::optimizer;
}

}  // namespace paceline::analysis
