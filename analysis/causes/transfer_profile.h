// SPDX-License-Identifier: Apache-2.0
// What held up a collective between the arrival of its last member and its end.
//
// At each time, either some member that was still in the collective had no CPU, or else some member was blocked
// elsewhere, or else bytes were moving. A member is blocked elsewhere while it sleeps outside of the call that
// completes the collective; this counts only for MPI, which then makes no progress. A member that sleeps inside that
// call waits for bytes. Where nothing is known of a member, and no other member explains the time, the cause is
// unknown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/causes/rank_activity.h"
#include "analysis/communication/collectives.h"

namespace paceline::analysis {

class TransferProfile {
 public:
  // Ranks of the collective are indices into `activities`. Cost: linear in the members, and the product of those that
  // had no CPU, slept or are unknown and of the changes of their states.
  TransferProfile(const Collective& collective, bool is_mpi, std::span<const RankActivity> activities);

  // The time from begin_ns to end_ns, which it adds up to: moving_bytes, no_cpu, throttled, blocked, unknown. O(log n).
  LossParts parts(std::int64_t begin_ns, std::int64_t end_ns) const;

 private:
  LossParts until(std::int64_t time_ns) const;  // since times_[0]
  std::vector<std::int64_t> times_;
  std::vector<LossParts> sums_;  // at each of them, since the first
};

}  // namespace paceline::analysis
