// SPDX-License-Identifier: Apache-2.0
// Sums of durations from traces of any origin, whose single durations may be as long as an integer can hold.
#pragma once

#include <cstdint>
#include <limits>

namespace paceline::analysis {

// Adds a duration in nanoseconds, at least 0, to a sum. A sum beyond 292 years, the longest duration, stays there.
inline void add_to_sum(std::int64_t& sum_ns, std::int64_t ns) {
  if (__builtin_add_overflow(sum_ns, ns, &sum_ns)) sum_ns = std::numeric_limits<std::int64_t>::max();
}

}  // namespace paceline::analysis
