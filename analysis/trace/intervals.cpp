// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/intervals.h"

#include <algorithm>

namespace paceline::analysis {

Intervals merged(Intervals intervals) {
  std::ranges::sort(intervals, {}, &TimeInterval::start_ns);
  Intervals result;
  for (const TimeInterval& interval : intervals) {
    if (!result.empty() && interval.start_ns <= result.back().end_ns) {
      result.back().end_ns = std::max(result.back().end_ns, interval.end_ns);
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

std::int64_t total_ns(const Intervals& intervals) {
  std::int64_t total = 0;
  for (const TimeInterval& interval : intervals) total += interval.end_ns - interval.start_ns;
  return total;
}

Intervals common(const Intervals& a, const Intervals& b) {
  Intervals result;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const std::int64_t start = std::max(i->start_ns, j->start_ns), end = std::min(i->end_ns, j->end_ns);
    if (start < end) result.push_back({start, end});
    if (i->end_ns < j->end_ns) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

Intervals without(const Intervals& a, const Intervals& b) {
  Intervals result;
  auto cover = b.begin();
  for (TimeInterval left : a) {
    while (cover != b.end() && cover->end_ns <= left.start_ns) ++cover;
    for (auto over = cover; over != b.end() && over->start_ns < left.end_ns; ++over) {
      if (over->start_ns > left.start_ns) result.push_back({left.start_ns, over->start_ns});
      left.start_ns = over->end_ns;
    }
    if (left.start_ns < left.end_ns) result.push_back(left);
  }
  return result;
}

}  // namespace paceline::analysis
