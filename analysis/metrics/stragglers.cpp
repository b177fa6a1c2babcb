#include "analysis/metrics/stragglers.h"

namespace paceline::analysis {

std::vector<Straggler> stragglers_of(const Trace& trace, const Collectives& collectives) {
  std::vector<Straggler> stragglers(trace.ranks.size());
  for (std::uint32_t r = 0; r < stragglers.size(); ++r) stragglers[r].rank = r;
  for (const Collective& collective : collectives.matched) {
    if (!collective.timed) continue;
    Straggler& last = stragglers[collective.last_rank];
    ++last.last_count;
    for (const CollectiveCall& call : collective.calls) {
      stragglers[call.rank].waited_ns += collective.wait_ns(call);
      last.caused_ns += collective.wait_ns(call);
    }
  }
  return stragglers;
}

}  // namespace paceline::analysis
