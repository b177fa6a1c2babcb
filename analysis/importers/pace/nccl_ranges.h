// SPDX-License-Identifier: Apache-2.0
// NCCL's own NVTX ranges. Each call is a range in the domain "NCCL". Its payload has the communicator (a hash that is
// equal on all ranks), the size, and the call's other arguments.
//
// NCCL enqueues a call on the calling thread before the call returns. Between ncclGroupStart and ncclGroupEnd it
// enqueues before the outermost ncclGroupEnd returns. An event of NCCL's profiler plugin therefore belongs to the first
// call of the same thread, communicator, function, size and peer that has no event yet and that was being enqueued at
// the time. A non-blocking communicator enqueues on a thread of NCCL's own, which has no ranges: then the event belongs
// to the earliest call of any thread, with the same communicator, function, size and peer, that has begun and has no
// event yet. That needs a file that misses no call.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

class NcclRanges {
 public:
  struct Call {
    TrackBuilder* track = nullptr;
    std::uint32_t slice = 0;  // of that track
    std::uint64_t thread = 0;
    std::int64_t start_ns = 0, enqueued_ns = 0;  // enqueued by then
    NameId name = 0;                             // "ncclAllReduce"
    std::uint64_t communicator = 0, bytes = 0;   // bytes: of one rank's part
    std::int32_t peer = -1, root = -1;
    NameId reduction = 0;  // "Sum"
    bool taken = false;
  };

  // counts_all: the file misses no call.
  NcclRanges(RankBuilder& rank, bool counts_all) : rank_(rank), counts_all_(counts_all) {}

  // Reads a thread's finished ranges. Cost: linear in its slices and arguments where NCCL has ranges, else constant.
  void read(std::uint64_t thread, TrackBuilder& track);

  // The call that was enqueued at that time; nullptr if there is no range for it. Times must not fall from call to
  // call.
  Call* take(std::uint64_t thread, std::int64_t time_ns, std::uint64_t communicator, NameId name, std::uint64_t bytes,
             std::int32_t peer);

  // Collectives, sends and receives that have a communicator and more than 0 bytes, thread by thread in their order.
  std::vector<Call>& calls() { return calls_; }
  // Ranks in a communicator, 0 if no range has it.
  std::uint32_t members(std::uint64_t communicator) const;
  // Number of collectives, sends and receives without a communicator, which cannot be matched with those of other
  // ranks.
  std::uint64_t without_communicator() const { return without_communicator_; }

 private:
  // Thread (0: any), communicator, name, bytes, peer.
  using Key = std::tuple<std::uint64_t, std::uint64_t, NameId, std::uint64_t, std::int32_t>;
  struct Waiting {
    std::vector<std::size_t> calls;  // indexes
    std::size_t next = 0;
  };

  RankBuilder& rank_;
  std::vector<Call> calls_;
  void sort_by_start();

  const bool counts_all_;
  std::set<std::uint64_t> threads_;  // with ranges
  bool sorted_ = false;
  std::map<Key, Waiting> waiting_;
  std::map<std::uint64_t, std::uint32_t> members_;
  std::uint64_t without_communicator_ = 0;
};

}  // namespace paceline::analysis
