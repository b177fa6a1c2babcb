// SPDX-License-Identifier: Apache-2.0
// The work of a rank's devices, by Holistic Trace Analysis's definitions, over all of its streams.
//
// span = last end − first start of anything on them; idle = span − union of all; compute = union of the kernels that
// are not communication (and of graphs that were recorded as a whole, whatever is inside); non-compute = span − compute
// − idle. The rules (phase_rules.h) name the communication kernels: NCCL's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/index/correlations.h"
#include "analysis/phases/phase_rules.h"
#include "analysis/trace/intervals.h"
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

// A stream and its tracks. A kernel that begins before the one ahead of it in its stream has ended, as CUDA's
// programmatic dependent launch lets it, is on the track "STREAM (2)".
struct Stream {
  std::string name;  // "GPU 0 stream 7"
  std::vector<const Track*> tracks;
};
// In the rank's order.
std::vector<Stream> streams_of(const Rank& rank);

// Why a stream was idle between one piece of its work and the next, by Holistic Trace Analysis's definitions: the host
// had not launched the next one yet when the last one ended (host wait); it had, and the next one came within 30 ns
// (kernel wait), or later (other: a dependency on another stream, or no room on the device). Work whose launch is not
// recorded counts as launched.
struct StreamIdle {
  std::string stream;
  std::int64_t host_wait_ns = 0, kernel_wait_ns = 0, other_ns = 0;
};
// The stretches, by cause. Cost: n log n in the slices of the stream.
struct IdleGaps {
  Intervals host_wait, kernel_wait, other;
};
IdleGaps idle_gaps(const Rank& rank, const Stream& stream, const Correlations& correlations);
// The streams with at least two pieces of work, in the rank's order.
std::vector<StreamIdle> stream_idle(const Rank& rank, const Correlations& correlations);

}  // namespace paceline::analysis
