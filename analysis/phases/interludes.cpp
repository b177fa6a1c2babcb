// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/interludes.h"

#include <algorithm>

namespace paceline::analysis {
namespace interlude_parts {

std::int64_t end_of(const Iteration& iteration) { return iteration.start_ns + iteration.duration_ns; }

}  // namespace interlude_parts

void InterludeWalk::add_to(const PhaseInterval& interval) {
  while (next_ < iterations_.size() && interlude_parts::end_of(iterations_[next_]) <= interval.start_ns) ++next_;
  const bool inside = next_ < iterations_.size() && iterations_[next_].start_ns <= interval.start_ns;
  const std::size_t place = 2 * next_ + (inside ? 1 : 0);
  const bool same_place = !found_.empty() && place == place_;
  if (!same_place || found_.back().phase != interval.phase) {
    if (same_place) found_.back().settled_ns = interval.start_ns;
    const bool follows_iteration = !inside && !same_place && next_ > 0;
    found_.push_back(
        {.start_ns = follows_iteration ? interlude_parts::end_of(iterations_[next_ - 1]) : interval.start_ns,
         .phase = interval.phase});
  }
  found_.back().end_ns = interval.end_ns;
  found_.back().settled_ns = !inside && next_ < iterations_.size() ? iterations_[next_].start_ns : interval.end_ns;
  place_ = place;
}

std::int64_t interlude_ns(std::span<const Interlude> interludes, std::span<const Iteration> iterations,
                          const Iteration& of, Phase phase) {
  if (interludes.empty() || &of == iterations.data()) return 0;
  std::int64_t sum = 0;
  auto at = std::ranges::lower_bound(interludes, interlude_parts::end_of(*(&of - 1)), {}, &Interlude::start_ns);
  for (; at != interludes.end() && at->end_ns <= of.start_ns; ++at) {
    if (at->phase == phase) sum += at->end_ns - at->start_ns;
  }
  return sum;
}

}  // namespace paceline::analysis
