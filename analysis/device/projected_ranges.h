// SPDX-License-Identifier: Apache-2.0
// Ranges where their work ran: on a stream, a range lasts from the start of the first to the end of the last kernel or
// copy that was launched from inside it ("NVTX projected" in Nsight Systems).
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/index/correlations.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct ProjectedRanges {
  // The range on its thread, and its work on the stream.
  struct Origin {
    std::uint32_t track = 0, slice = 0;  // index into Rank::tracks, and of its slices
    std::uint32_t operations = 0;
    std::int64_t work_ns = 0;  // the sum of their durations
  };
  // Of the ranges' kinds and without arguments, by start. Those of one thread nest; the levels of the next thread that
  // launched work are below them.
  Slices slices;
  std::vector<Origin> origins;  // of each slice
};

// Of one stream of the rank, given as an index into its tracks. Calls of CUDA, MPI and NCCL are no ranges.
// `correlations` are those of the rank. Cost: linear in the slices of the threads; n log n in the work of the stream.
ProjectedRanges projected_ranges(const Trace& trace, const Rank& rank, std::size_t stream,
                                 const Correlations& correlations);

}  // namespace paceline::analysis
