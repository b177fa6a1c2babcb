// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/lone_interludes.h"

#include <algorithm>

namespace paceline::analysis {
namespace lone_interlude_parts {

constexpr std::int64_t most_of_others = 20;  // one rank has this many times the interludes of all others

// What the ranks waited for `rank` in collectives because of its interludes, mean over the others.
std::int64_t waited_ns(std::span<const Interlude> interludes, Phase phase, std::size_t rank,
                       const Collectives& collectives) {
  std::int64_t sum = 0;
  for (const auto& blocked : collectives.blocked) {
    for (const BlockedTime& one : blocked) {
      if (one.wait_ns() == 0 || collectives.matched[one.collective].last_rank != rank) continue;
      const std::int64_t until = one.start_ns + one.wait_ns();
      auto at = std::ranges::upper_bound(interludes, one.start_ns, {}, &Interlude::settled_ns);
      for (; at != interludes.end() && at->start_ns < until; ++at) {
        if (at->phase == phase) sum += std::min(until, at->settled_ns) - std::max(one.start_ns, at->start_ns);
      }
    }
  }
  return sum / static_cast<std::int64_t>(collectives.blocked.size() - 1);
}

}  // namespace lone_interlude_parts

std::vector<LoneInterludes> lone_interludes(std::span<const RankSummary> ranks, const Collectives& collectives) {
  std::vector<LoneInterludes> lone;
  if (ranks.size() < 2 || collectives.blocked.size() != ranks.size()) return lone;
  for (const Phase phase : {Phase::evaluate, Phase::checkpoint}) {
    LoneInterludes most{.phase = phase};
    std::int64_t all_ns = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      LoneInterludes own{.rank = r, .phase = phase};
      for (const Interlude& one : ranks[r].interludes) {
        if (one.phase == phase) ++own.count, own.ns += one.end_ns - one.start_ns;
      }
      all_ns += own.ns;
      if (own.ns > most.ns) most = own;
    }
    if (most.ns == 0 || (all_ns - most.ns) * lone_interlude_parts::most_of_others > most.ns) continue;
    most.waited_ns = lone_interlude_parts::waited_ns(ranks[most.rank].interludes, phase, most.rank, collectives);
    if (most.waited_ns > 0) lone.push_back(most);
  }
  return lone;
}

}  // namespace paceline::analysis
