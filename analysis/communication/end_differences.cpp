// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/end_differences.h"

#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace end_difference_parts {

// All ranks depend on all others: a rank may leave a broadcast before another comes. Ranges are of algorithms that need
// not end so.
bool leave_together(std::string_view operation) {
  for (const std::string_view name : {"llreduce", "llReduce", "llgather", "llGather", "lltoall", "llToAll", "arrier"}) {
    if (operation.find(name) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace end_difference_parts

std::vector<double> end_differences(const Collectives& collectives, std::size_t ranks) {
  using namespace end_difference_parts;
  std::vector<double> sums(ranks);
  std::vector<std::int64_t> ends(ranks);
  std::size_t counted = 0;
  for (const Collective& collective : collectives.matched) {
    if (!collective.timed || collective.of_range || collective.calls.size() != ranks) continue;
    if (!leave_together(collectives.operations[collective.operation])) continue;
    const auto blocks = [](const MemberCall& call) { return call.blocked_from_ns == call.start_ns; };
    if (!std::ranges::all_of(collective.calls, blocks)) continue;
    for (std::size_t r = 0; r < ranks; ++r) ends[r] = collective.calls[r].end_ns;
    const std::int64_t middle = median(ends);
    for (std::size_t r = 0; r < ranks; ++r) sums[r] += static_cast<double>(ends[r] - middle);
    ++counted;
  }
  if (counted == 0) return {};
  for (double& sum : sums) sum /= static_cast<double>(counted);
  return sums;
}

}  // namespace paceline::analysis
