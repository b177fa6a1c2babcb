// SPDX-License-Identifier: Apache-2.0
// Where the time of sharded optimizers and of compressed gradients goes: how long the reduce-scatters and all-gathers
// of a rank take and how much of that is hidden under compute, and how long it compresses and decompresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/device/gpu.h"
#include "analysis/device/overlap.h"
#include "analysis/phases/phase_rules.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// One kind of work of a rank, over the whole run.
struct ExchangeTime {
  std::string name;  // "reduce-scatter", "all-gather", "mean of P", "mean of Q", "compress", "decompress"
  std::uint64_t calls = 0;
  double bytes = 0;            // the payloads of the trainer's ranges; 0 where they are not known
  Overlap overlap = {};        // of the union over the rank's threads, or over its streams
  std::int64_t median_ns = 0;  // of a call
};

// The kinds that the rank has, in the order above: the trainer's ranges with these names, and NCCL's kernels of
// reduce-scatters and all-gathers, whose times count where a rank has both. `compute`: the main thread's forward,
// backward and optimizer, in order. Cost: linear in the slices, and n log n in those of these kinds.
std::vector<ExchangeTime> exchange_times(const PhaseTable& table, const Rank& rank, const Intervals& compute,
                                         const GpuActivity& gpu);

}  // namespace paceline::analysis
