// Who was waited for: for each rank, in how many collectives it came last, and how long the others waited for it.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/metrics/collectives.h"

namespace paceline::analysis {

struct Straggler {
  std::uint32_t rank = 0;        // index into Trace::ranks
  std::uint64_t last_count = 0;  // collectives in which it started last
  std::int64_t caused_ns = 0;    // what all others waited in those, added up
  std::int64_t waited_ns = 0;    // what it waited itself for others
};

// One entry a rank, in Trace::ranks' order. Cost: linear in the matched calls.
std::vector<Straggler> stragglers_of(const Trace& trace, const Collectives& collectives);

}  // namespace paceline::analysis
