// SPDX-License-Identifier: Apache-2.0
// The time in which a rank was blocked in collectives, counted once however many of them are in flight together.
//
// A rank is blocked in a call that completes a collective: in a blocking call, in the wait for a request, and in a
// kernel on its device, except for what its own work covers (CollectiveCalls::covered). The buckets of a gradient, the
// requests of one MPI_Waitall and calls inside calls are blocked at the same time, so only the union of all of these
// counts. It is cut into intervals from its end: an interval ends with the completion of the collective that it awaits,
// and begins where the rank blocked for that one. The time before belongs to the next one that the rank was blocked in.
//
// Of an interval, the time before the last member of the awaited collective arrived is waiting, and the rest is
// transfer. So waiting + transfer = blocked time, which is at most the wall time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/trace/intervals.h"

namespace paceline::analysis {

// A time in which a rank was blocked in one collective.
struct BlockedTime {
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t last_arrival_ns = 0;  // of the collective's members
  std::uint32_t collective = 0;      // the caller's number for it

  std::int64_t length_ns() const { return end_ns - start_ns; }
  std::int64_t wait_ns() const { return std::max<std::int64_t>(std::min(end_ns, last_arrival_ns) - start_ns, 0); }
};

// Appends the parts of `call` that lie in none of `covered` (merged). Cost: log n in `covered`, and linear in those
// that it meets.
void add_uncovered(const BlockedTime& call, const Intervals& covered, std::vector<BlockedTime>& out);

// Disjoint intervals of the same time as the given ones, by start. Empty ones are left out. Cost: one sort and one
// sweep.
std::vector<BlockedTime> outermost(std::vector<BlockedTime> calls);

// How much of the time from from_ns to to_ns is in the intervals, which are disjoint and sorted. Cost: log n, and
// linear in those that it meets.
std::int64_t blocked_ns(std::span<const BlockedTime> intervals, std::int64_t from_ns, std::int64_t to_ns);

}  // namespace paceline::analysis
