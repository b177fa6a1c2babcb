// SPDX-License-Identifier: Apache-2.0
// Launches: from the CUDA call that starts work on a stream to the start of that work.
//
// A call and its work have the same correlation. The delay of a launch is the time between the end of the call and the
// start of the work, at least 0. Calls that are not on any thread, and work without a call, are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/index/correlations.h"
#include "analysis/statistics/distribution.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct LaunchStatistics {
  Distribution call_ns, gpu_ns, delay_ns;  // one value for each pair of a call and its work
  std::uint64_t slow_calls = 0;            // longer than 50 µs
  std::uint64_t late_starts = 0;           // delays longer than 100 µs
  std::uint64_t short_work = 0;            // shorter on the device than its call, which is not a slow one
};

// How many launches of a stream were under way: +1 where a call begins, −1 where its work starts. The figures are over
// these changes, as Holistic Trace Analysis has them.
struct QueueStatistics {
  std::string stream;   // "GPU 0 stream 7"
  Distribution length;  // after each change
};

struct Launches {
  LaunchStatistics statistics;
  std::vector<QueueStatistics> queues;  // in the order of the rank's streams
};

// Nothing where no work on a stream has a call. `correlations` are those of the rank. Cost: n log n in the slices with
// a correlation.
std::optional<Launches> launches_of(const Rank& rank, const Correlations& correlations);

}  // namespace paceline::analysis
