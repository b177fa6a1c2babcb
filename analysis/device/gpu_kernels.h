// SPDX-License-Identifier: Apache-2.0
// The work of a rank's devices by its name: how often each kernel, copy and fill ran, and for how long. Copies and
// fills between different kinds of memory are entries of their own: "Memcpy HtoD (pinned -> GPU 0)".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct KernelStatistics {
  std::string name;
  std::string category;  // "kernel", "memcpy", "memset" or "graph"
  std::uint64_t count = 0;
  std::int64_t sum_ns = 0, min_ns = 0, max_ns = 0;
  double mean_ns = 0, stddev_ns = 0;  // of the sample, as in distribution.h
};

// Over all streams of the rank, the largest sum first. Cost: linear in their slices.
std::vector<KernelStatistics> gpu_kernels(const Trace& trace, const Rank& rank);

}  // namespace paceline::analysis
