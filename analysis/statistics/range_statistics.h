// SPDX-License-Identifier: Apache-2.0
// How long the ranges and calls of a rank took, and the device time of what was launched from inside them.
//
// A row is one kind of slice on the rank's threads: an NVTX range of one domain, category and name (a layer, a phase, a
// module of PyTorch), or a function of MPI, CUDA or NCCL. NCCL's own rows are also those of its tracks, whose times are
// those of the work on the device where that is known. A range inside another one counts in both. Work on a device
// belongs to the ranges that were open on the thread that launched it, at the start of the innermost call with the
// correlation of the work.
//
// A trace may have millions of names. Beyond `most_range_names` rows, only those with the largest totals are kept, and
// the last row has the sums of all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/index/correlations.h"
#include "analysis/statistics/duration_sketch.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Device time of the kernels, copies and fills that were launched from inside the calls of a row.
struct DeviceTime {
  std::uint64_t operations = 0;
  std::int64_t work_ns = 0;  // the sum of their durations
  // From the start of the first to the end of the last one of each call, added up over the calls: the "GPU projection"
  // of Nsight Systems.
  std::int64_t projected_ns = 0;
};

struct RangeStatistics {
  std::string domain, category, name;
  DurationSketch durations;  // of the calls
  DeviceTime device;
  // The row "other names" stands for this many rows that were not kept; 0 for the row of one name. Of several ranks
  // together, it is the least number that it can be.
  std::uint64_t others = 0;
};

// A row takes about 1 kB in the analysis and in JSON.
inline constexpr std::size_t most_range_names = 200'000;

// The largest total first, and the row "other names" last. The rows of point-to-point messages are always kept, because
// their number decides whether messages are matched. Cost: linear in the slices of the rank; with work on devices, n
// log n in that work. `correlations` are those of the rank; nullptr where it has no work on devices.
std::vector<RangeStatistics> range_statistics(const Trace& trace, const Rank& rank, const Correlations* correlations,
                                              std::size_t most_names = most_range_names);

// The rows of all ranks, joined by domain, category and name. Cost: n log n in the rows.
std::vector<RangeStatistics> merged_ranges(std::vector<const std::vector<RangeStatistics>*> ranks,
                                           std::size_t most_names = most_range_names);

// The number of names in the rows, those of the row "other names" as well.
std::uint64_t names_in(const std::vector<RangeStatistics>& rows);

}  // namespace paceline::analysis
