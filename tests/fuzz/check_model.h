// SPDX-License-Identifier: Apache-2.0
// What holds for every trace that a reader made, however hostile its file was.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::fuzz {

inline void must(bool holds) {
  if (!holds) std::abort();
}

// Columns have one length, kinds and texts exist, and slices are sorted and nest.
inline void check(const analysis::Trace& trace, const analysis::Slices& slices, bool nests) {
  must(slices.kind.size() == slices.size() && slices.record.size() == slices.size());
  std::vector<std::int64_t> ends;  // of the slices around this one
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    must(slices.kind[i] < trace.kinds.size());
    must(trace.kinds[slices.kind[i]].name < trace.names.size());
    must(i == 0 || slices.start_ns[i - 1] <= slices.start_ns[i]);
    slices.each_argument(i, [&](const analysis::Argument& argument) { must(argument.key < trace.names.size()); });
    if (!nests) continue;
    must(slices.duration_ns[i] >= 0);
    must(slices.depth[i] <= ends.size());
    ends.resize(slices.depth[i]);
    must(ends.empty() || slices.end_ns(i) <= ends.back());
    ends.push_back(slices.end_ns(i));
  }
}

inline void check(const analysis::Trace& trace) {
  for (const analysis::Rank& rank : trace.ranks) {
    for (const analysis::Track& track : rank.tracks) {
      check(trace, track.slices, true);
      check(trace, track.marks, false);
    }
  }
}

}  // namespace paceline::fuzz
