// Communication hidden under compute.
//
// overlap = (merged communication ∩ merged compute) ÷ merged communication (Holistic Trace Analysis's definition).
// On a rank whose streams have communication both are kernels on its streams (gpu.h). Without, communication is what
// tracks other than the main thread's spend in the communication phase, and compute is the main thread's forward,
// backward and optimizer.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/metrics/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct Overlap {
  std::int64_t communication_ns = 0;  // union over tracks
  std::int64_t hidden_ns = 0;         // the part of it under compute
};

// Nothing where no communication runs beside the main thread. Cost: n log n in the communication slices.
std::optional<Overlap> overlap_of(const Trace& trace, const Rank& rank, const RankPhases& phases);

}  // namespace paceline::analysis
