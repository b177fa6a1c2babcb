// The work of a rank's devices, by Holistic Trace Analysis's definitions, over all of its streams.
//
// span = last end − first start of anything on them; idle = span − union of all; compute = union of the kernels that
// are not communication (and of graphs that were recorded as a whole, whatever is inside); non-compute = span − compute
// − idle. The rules (phase_rules.h) name the communication kernels: NCCL's.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/metrics/intervals.h"
#include "analysis/metrics/phase_rules.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct GpuActivity {
  Intervals compute, communication, all;  // merged

  bool empty() const { return all.empty(); }
  // Communication that no computation hides.
  Intervals exposed() const { return without(communication, compute); }
};

// Cost: n log n in the slices of the rank's streams.
GpuActivity gpu_activity(const PhaseTable& table, const Rank& rank);

struct GpuUsage {
  std::int64_t span_ns = 0, idle_ns = 0, compute_ns = 0, noncompute_ns = 0;
};
// Nothing if the rank has no stream.
std::optional<GpuUsage> gpu_usage(const GpuActivity& activity);

}  // namespace paceline::analysis
