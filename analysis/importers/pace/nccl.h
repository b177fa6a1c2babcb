// SPDX-License-Identifier: Apache-2.0
// NCCL in a .pace file: its calls go to the threads that made them, its collectives to a track for each communicator.
//
// NCCL reports the end of a collective when it is enqueued. The time at which it ran comes from the first of these that
// is known: the channels of its kernel (the device's clock), the kernel that the same thread launched just before
// (CUPTI), the kernel that its plan's callback belongs to, or the last of its proxies. Then the collective has the
// category "collective" (a send or receive "point-to-point") and this time. Otherwise it has the category "enqueue" and
// the time of its enqueueing, and no waits are computed from it.
//
// NCCL enqueues a plan in a callback on a thread of CUDA's, before the plan's kernel runs, if the plan is launched by a
// graph, or if the network must be told in the order of the stream (enqueue.cc, hostStreamPlanCallback). Then the
// thread launched nothing. The callbacks of one communicator come in the order of its launches, and the k-th one
// belongs to the k-th launch. Of graphs, whose kernels do not name their communicator, that is known only where one
// communicator has such plans.
//
// NCCL's own NVTX range is the call that a collective came from (nccl_ranges.h): both have the same number "call". If
// no plugin reported a communicator, its track is made from the calls. A collective then ran when the one kernel ran
// that its thread launched for it (CUPTI), and its sequence number is counted here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/importers/pace/cuda.h"
#include "analysis/importers/pace/nccl_ranges.h"

namespace paceline::analysis {

class PaceNccl {
 public:
  // Collects all NCCL events of the file. Cost: linear in its slots.
  explicit PaceNccl(PaceContext& context);

  // Adds the calls of one of the file's tracks (domain "nccl", categories "api", "group", "launch", "enqueue") and
  // reads its ranges, which must have been added before.
  void add_calls(std::uint32_t track_index, std::uint64_t thread, TrackBuilder& track);
  // Adds the tracks of the communicators (kind nccl) and of the proxies. `cuda` has the launched kernels. `process`
  // goes in front of the labels.
  void add_tracks(const PaceCuda& cuda, const std::string& process);

  std::uint64_t events() const { return events_; }
  // One line that says why calls cannot be matched with those of other ranks, or "". Valid after add_tracks().
  std::string missing() const;

 private:
  using Tracks = std::map<NameId, TrackBuilder*>;  // by communicator, 0 where it is not known
  struct Span {
    std::int64_t start_ns = 0, end_ns = 0;
  };
  struct Work {  // a call, a collective, a send or receive, a proxy
    format::EventType type = format::EventType::none;
    std::uint32_t track = 0;
    std::int64_t start_ns = 0;
    std::optional<std::int64_t> end_ns;
    std::uint32_t operation = 0, communicator = 0;
    std::uint64_t bytes = 0;
    std::uint64_t group = 0;                              // of a collective or message: the call that enqueued it
    std::uint32_t sequence = 0;                           // of a collective
    std::int32_t root = 0, peer = 0;                      // peer: of a message or a proxy
    format::NcclCall call = format::NcclCall::group_api;  // of a call
    bool captured = false;                                // of a call: into a graph
    bool sends = false;                                   // this and the rest: of a proxy
    std::uint16_t channel = 0;
    std::uint32_t steps = 0;
    std::uint64_t works_for = 0;  // id of the collective or message
  };
  struct Operation {
    NameId name = 0, datatype = 0, algorithm = 0, protocol = 0;
    std::uint32_t channels = 0, warps = 0;
    bool for_each_rank = false, rooted = false;
  };
  struct Edge {
    std::uint64_t id = 0, device_ns = 0;
    std::int64_t told_ns = 0;
    bool end = false;
  };

  void collect();
  void place_channels();
  KindId kind(NameId name, std::string_view category);
  const Operation& operation(std::uint32_t name);
  void join_callbacks(const PaceCuda& cuda);
  bool launched_by_its_thread(std::uint64_t id, const Work& work, const PaceCuda& cuda, Span* kernel);
  std::uint64_t thread_of(const Work& work) const;
  std::optional<Span> ran(std::uint64_t id, const Work& work, const PaceCuda& cuda);
  void add_work(const Work& work, std::optional<Span> ran, NcclRanges::Call* call);
  void add_untold_calls(const PaceCuda& cuda);

  PaceContext& context_;
  RankBuilder& rank_;
  const bool counts_all_;  // the file misses no call, so counting them numbers them
  NcclRanges ranges_;
  Tracks tracks_;
  std::string process_;
  std::set<std::uint64_t> told_;  // identities of the communicators that the plugin reported
  std::uint64_t last_call_ = 0;   // number that joins a collective and its range
  std::uint64_t uncounted_ = 0;
  std::vector<std::string> names_;  // the file's, and those of the operations that only ranges name
  std::unordered_map<std::uint32_t, Communicator> communicators_;  // those of the file and those that only ranges name
  std::unordered_map<std::uint32_t, Operation> operations_;
  std::map<std::uint64_t, Work> works_;                                  // by id: in the order of their begins
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> calls_;  // ids, by track
  std::vector<Edge> edges_;
  std::unordered_map<std::uint64_t, Span> channels_;                                 // by what they worked for
  std::unordered_map<std::uint64_t, std::int64_t> proxies_;                          // the same; the last one's end
  std::map<std::pair<std::uint64_t, std::int64_t>, std::uint64_t> launch_of_group_;  // thread and launch, to group
  std::unordered_map<std::uint64_t, Span> callbacks_;  // kernels of the plans that callbacks enqueued, by plan
  std::uint64_t events_ = 0;
};

}  // namespace paceline::analysis
