// SPDX-License-Identifier: Apache-2.0
// Collective operations across ranks: how long each rank waited for the last one, and how long the transfer took.
//
// For one collective by itself: wait(rank) = from its own start to the last start over ranks, or to its own end if that
// is earlier; transfer = last end − last start. Calls are matched by communicator and sequence number where both are
// known, else by order within communicator and operation; starts of persistent collectives also by their number. Times
// of two hosts are as good as the error bounds of their clocks (Rank::clock_error_ns).
//
// The end of a collective that does not block is the time at which its completion was seen, so its transfer is an upper
// bound. A rank waits in it only inside the wait for its request. What is added up over collectives counts a time once,
// also where several are in flight (blocked_time.h). Some collectives are matched, but have no wait and no
// transfer: docs/metrics.md lists them.
//
// busbw = bytes ÷ transfer × factor, by operation and members n (nccl-tests, doc/PERFORMANCE.md): allreduce 2(n−1)/n;
// reduce-scatter, all-gather, all-to-all (n−1)/n; broadcast, reduce and others 1. Barriers carry nothing and have none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/communication/blocked_time.h"
#include "analysis/communication/collective_calls.h"

namespace paceline::analysis {

// The call of one rank in a collective. Ranks are indices into the given calls, which are those into Trace::ranks.
struct MemberCall {
  std::uint32_t rank = 0;
  std::uint32_t call = 0;  // index into CollectiveCalls::calls of the rank
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t blocked_from_ns = 0;
};

// One collective that at least two ranks were seen to take part in.
struct Collective {
  std::uint32_t operation = 0;     // index into Collectives::operations
  std::uint64_t communicator = 0;  // its identity
  std::uint64_t bytes = 0;         // the largest that a member gave
  std::uint32_t members = 0;       // of the communicator, including those that were not recorded
  std::vector<MemberCall> calls;   // by rank
  bool timed = true;               // else there is no waiting and no transfer
  bool of_range = false;           // of an algorithm of its own, as CollectiveCall
  std::int64_t last_start_ns = 0, transfer_ns = 0;
  std::uint32_t last_rank = 0;  // the one that the others waited for

  std::int64_t wait_ns(const MemberCall& call) const {
    return std::max<std::int64_t>(std::min(last_start_ns, call.end_ns) - call.blocked_from_ns, 0);
  }
};

// All collectives of one operation, size and number of members.
struct CollectiveRow {
  std::string operation;
  std::uint64_t bytes = 0;
  std::uint32_t members = 0;
  std::uint64_t count = 0, timed = 0;  // `timed` have waits and transfers
  std::int64_t wait_ns = 0;            // of all ranks, in the intervals in which they awaited these collectives
  std::int64_t transfer_ns = 0;        // over all timed collectives
  double busbw_bytes_per_s = 0;        // 0: it carries nothing, or took no time

  // Bytes ÷ transfer; 0 if nothing was timed or it took no time.
  double algbw_bytes_per_s() const {
    if (transfer_ns <= 0) return 0;
    return static_cast<double>(bytes) * static_cast<double>(timed) / (1e-9 * static_cast<double>(transfer_ns));
  }
};

struct Collectives {
  std::vector<std::string> operations;
  std::vector<Collective> matched;                // by last start
  std::vector<CollectiveRow> rows;                // by time, the largest sum of wait and transfer first
  std::vector<std::vector<BlockedTime>> blocked;  // of each rank, in the timed ones: indices into `matched`
  std::uint64_t unmatched_calls = 0;              // a partner is missing (not recorded, dropped) or was killed inside
};

// Cost: n log n in the calls.
Collectives match_collectives(std::span<const CollectiveCalls> ranks);
inline Collectives match_collectives(const Trace& trace) { return match_collectives(collective_calls(trace)); }

// What a rank waited for others in the timed collectives, and what it made others wait.
struct RankWaits {
  std::uint64_t last_count = 0;  // collectives in which it started last
  std::int64_t caused_ns = 0;    // what all others waited for it, added up
  std::int64_t waited_ns = 0;    // what it waited itself
  std::int64_t blocked_ns = 0;   // that, and the transfers that it awaited
};

// One entry for each of the `ranks` ranks. Cost: linear in the matched calls.
std::vector<RankWaits> waits_of(const Collectives& collectives, std::size_t ranks);

// The operation's name in lower case and without underscores: "MPI_Reduce_scatter" -> "mpireducescatter".
std::string plain_operation(std::string_view operation);

// nccl-tests' factor from algorithm to bus bandwidth for an MPI or NCCL operation's name; 0 for barriers.
double bus_factor(std::string_view operation, std::uint32_t members);

}  // namespace paceline::analysis
