// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/blocked_time.h"

#include <limits>
#include <tuple>

namespace paceline::analysis {

void add_uncovered(const BlockedTime& call, const Intervals& covered, std::vector<BlockedTime>& out) {
  BlockedTime left = call;
  auto cover = std::ranges::upper_bound(covered, call.start_ns, {}, &TimeInterval::end_ns);
  for (; cover != covered.end() && cover->start_ns < call.end_ns; ++cover) {
    left.end_ns = cover->start_ns;
    if (left.start_ns < left.end_ns) out.push_back(left);
    left.start_ns = cover->end_ns;
  }
  left.end_ns = call.end_ns;
  if (left.start_ns < left.end_ns) out.push_back(left);
}

std::vector<BlockedTime> outermost(std::vector<BlockedTime> calls) {
  // From the last end. Of calls that end together (one wait for several requests), the outermost is taken, and of those
  // that also begin together the one whose last member came last, because the wait cannot have ended before.
  std::ranges::sort(calls, std::greater{}, [](const BlockedTime& call) {
    return std::tuple(call.end_ns, ~call.start_ns, call.last_arrival_ns, call.collective);
  });
  std::vector<BlockedTime> intervals;
  std::int64_t until = std::numeric_limits<std::int64_t>::max();
  for (BlockedTime call : calls) {
    call.end_ns = std::min(call.end_ns, until);
    if (call.start_ns >= call.end_ns) continue;
    until = call.start_ns;
    intervals.push_back(call);
  }
  std::ranges::reverse(intervals);
  return intervals;
}

std::int64_t blocked_ns(std::span<const BlockedTime> intervals, std::int64_t from_ns, std::int64_t to_ns) {
  std::int64_t sum = 0;
  auto at = std::ranges::upper_bound(intervals, from_ns, {}, &BlockedTime::end_ns);
  for (; at != intervals.end() && at->start_ns < to_ns; ++at) {
    sum += std::min(at->end_ns, to_ns) - std::max(at->start_ns, from_ns);
  }
  return sum;
}

}  // namespace paceline::analysis
