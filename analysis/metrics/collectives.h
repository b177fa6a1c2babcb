// Collective operations across ranks: how long each rank waited for the last one, and how long the transfer took.
//
// For one collective: wait(rank) = from its own start to the last start over ranks, or to its own end where that comes
// first; transfer = last end − last start. Calls are matched by (communicator, sequence number) where both are known,
// else by order within communicator and operation; the k-th start of a persistent collective by what its initialisation
// has, and by k. Times of two hosts are as good as their clocks' error bounds (Rank::clock_error_ns).
//
// A non-blocking or persistent collective begins with the call that starts it (MPI_Iallreduce, MPI_Start) and ends with
// the wait or test that completes its request. A rank waits in it only inside that wait: what it does before is its own
// work. Its end is when completion was seen, so its transfer is an upper bound.
//
// Matched, but without wait and transfer, are collectives of which a part's time is not known (NCCL's that were only
// seen being enqueued, requests whose completion was not seen), and those of neighbourhoods: a rank waits for its
// neighbours there, which a trace does not name.
//
// busbw = bytes ÷ transfer × factor, by operation and members n (nccl-tests, doc/PERFORMANCE.md): allreduce 2(n−1)/n;
// reduce-scatter, all-gather, all-to-all (n−1)/n; broadcast, reduce and others 1; barriers carry nothing and have none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct CollectiveCall {
  std::uint32_t rank = 0;   // index into Trace::ranks
  std::uint32_t track = 0;  // index into Rank::tracks
  std::uint32_t slice = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t blocked_from_ns = 0;  // its start; of what does not block, the begin of the call that completed it
};

// One collective that at least two ranks were seen to take part in.
struct Collective {
  NameId operation = 0;               // "MPI_Allreduce"
  NameId communicator = 0;            // the text that tells it from others
  std::uint64_t bytes = 0;            // the largest that a member gave
  std::uint32_t members = 0;          // of the communicator, also those that were not recorded
  std::vector<CollectiveCall> calls;  // by rank
  bool timed = true;                  // else there is no waiting and no transfer
  std::int64_t last_start_ns = 0, transfer_ns = 0;
  std::uint32_t last_rank = 0;  // index into Trace::ranks: the one that the others waited for

  std::int64_t wait_ns(const CollectiveCall& call) const {
    return std::max<std::int64_t>(std::min(last_start_ns, call.end_ns) - call.blocked_from_ns, 0);
  }
};

// All collectives of one operation and size.
struct CollectiveRow {
  NameId operation = 0;
  std::uint64_t bytes = 0;
  std::uint32_t members = 0;
  std::uint64_t count = 0, timed = 0;
  std::int64_t wait_ns = 0;      // over all ranks and timed collectives
  std::int64_t transfer_ns = 0;  // over all timed collectives
  double busbw_bytes_per_s = 0;  // 0: it carries nothing, or took no time
};

struct Collectives {
  std::vector<Collective> matched;    // by last start
  std::vector<CollectiveRow> rows;    // by time, the largest sum of wait and transfer first
  std::uint64_t unmatched_calls = 0;  // a partner is missing (not recorded, dropped) or was killed inside
};

// Cost: linear in the collective calls (hashing), and n log n for the order of the result.
Collectives match_collectives(const Trace& trace);

// nccl-tests' factor from algorithm to bus bandwidth for an MPI or NCCL operation's name; 0 for barriers.
double bus_factor(std::string_view operation, std::uint32_t members);

}  // namespace paceline::analysis
