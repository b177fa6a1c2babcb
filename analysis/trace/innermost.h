// SPDX-License-Identifier: Apache-2.0
// The innermost slice at each time of a track.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/trace/slices.h"

namespace paceline::analysis {

// Calls visit(from_ns, until_ns, slice) for each stretch in which one slice is the innermost, in order. Time outside
// all slices is left out. Slices that begin at or after until_ns are not visited. A slice for which skip(slice) is true
// is taken as if it were not there, which spares its cost; skip() is called in the order of the slices. Cost: linear in
// the slices.
template <class Visit, class Skip>
void each_innermost(const Slices& slices, std::int64_t until_ns, Visit&& visit, Skip&& skip) {
  std::vector<std::uint32_t> open;
  std::int64_t now = 0;
  const auto close = [&](std::int64_t until) {
    while (!open.empty()) {
      const std::int64_t end = slices.end_ns(open.back());
      const std::int64_t stop = std::min(end, until);
      if (stop > now) {
        visit(now, stop, open.back());
        now = stop;
      }
      if (end > until) return;
      open.pop_back();
    }
  };
  for (std::uint32_t i = 0; i < slices.size() && slices.start_ns[i] < until_ns; ++i) {
    if (skip(i)) continue;
    close(slices.start_ns[i]);
    now = slices.start_ns[i];
    open.push_back(i);
  }
  close(until_ns);
}

template <class Visit>
void each_innermost(const Slices& slices, std::int64_t until_ns, Visit&& visit) {
  each_innermost(slices, until_ns, visit, [](std::uint32_t) { return false; });
}

}  // namespace paceline::analysis
