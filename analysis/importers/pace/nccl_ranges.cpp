// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/nccl_ranges.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace paceline::analysis {
namespace {

constexpr std::uint64_t any_thread = 0;
constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

bool communicates_by_nccl(std::string_view name) {
  constexpr std::string_view all[] = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast",
                                      "ncclReduce",    "ncclAlltoAll",  "ncclGather",        "ncclScatter",
                                      "ncclSend",      "ncclRecv"};
  return std::ranges::find(all, name) != std::end(all);
}

// The payload of one range, by NCCL's keys.
struct RangeSaid {
  std::uint64_t communicator = 0, bytes = 0;
  std::uint32_t ranks = 0;
  std::int32_t peer = -1, root = -1;
  NameId reduction = 0;
  bool has_communicator = false, has_bytes = false;
};

class RangeWords {
 public:
  explicit RangeWords(const Names& names)
      : communicator_(names.find("NCCL communicator ID")),
        bytes_(names.find("Message size [bytes]")),
        ranks_(names.find("No. of ranks")),
        peer_(names.find("Peer rank")),
        root_(names.find("Root")),
        reduction_(names.find("Reduction operation")) {}

  void add(const Argument& argument, RangeSaid& said) const {
    if (argument.key == communicator_) {
      said.communicator = argument.whole();
      said.has_communicator = true;
    } else if (argument.key == bytes_) {
      said.bytes = argument.whole();
      said.has_bytes = true;
    } else if (argument.key == ranks_) {
      said.ranks = static_cast<std::uint32_t>(argument.whole());
    } else if (argument.key == peer_) {
      said.peer = static_cast<std::int32_t>(argument.whole());
    } else if (argument.key == root_) {
      said.root = static_cast<std::int32_t>(argument.whole());
    } else if (argument.key == reduction_) {
      said.reduction = argument.text();
    }
  }

 private:
  const NameId communicator_, bytes_, ranks_, peer_, root_, reduction_;
};

}  // namespace

void NcclRanges::read(std::uint64_t thread, TrackBuilder& track) {
  const Names& names = rank_.names();
  const NameId domain = names.find("NCCL");
  if (domain == 0) return;
  const Slices& slices = track.slices();
  const auto is_nccl = [&](std::uint32_t slice) {
    return rank_.vocabulary().kinds[slices.kind[slice]].domain == domain;
  };

  std::vector<std::uint32_t> ranges;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    if (is_nccl(i)) ranges.push_back(i);
  }
  if (ranges.empty()) return;
  const RangeWords words(names);
  std::map<std::uint32_t, RangeSaid> said;  // by slice
  for (const std::uint32_t range : ranges) {
    RangeSaid& of = said[range];
    slices.each_argument(range, [&](const Argument& argument) { words.add(argument, of); });
  }

  const NameId group_start = names.find("ncclGroupStart"), group_end = names.find("ncclGroupEnd");
  unsigned depth = 0;
  std::size_t first_of_group = calls_.size();
  for (const std::uint32_t range : ranges) {
    const NameId name = rank_.vocabulary().kinds[slices.kind[range]].name;
    const std::int64_t end_ns = track.is_open(range) ? no_end : slices.end_ns(range);
    if (name == group_start && ++depth == 1) first_of_group = calls_.size();
    if (name == group_end && depth > 0 && --depth == 0) {
      for (std::size_t call = first_of_group; call < calls_.size(); ++call) calls_[call].enqueued_ns = end_ns;
    }
    const RangeSaid& of = said[range];
    if (of.has_communicator && of.ranks > 0) members_[of.communicator] = of.ranks;
    if (!communicates_by_nccl(names[name])) continue;
    without_communicator_ += !of.has_communicator;
    if (!of.has_communicator || of.bytes == 0) continue;  // nothing is sent
    calls_.push_back({&track, range, thread, slices.start_ns[range], depth > 0 ? no_end : end_ns, name, of.communicator,
                      of.bytes, of.peer, of.root, of.reduction});
    waiting_[{thread, of.communicator, name, of.bytes, of.peer}].calls.push_back(calls_.size() - 1);
    waiting_[{any_thread, of.communicator, name, of.bytes, of.peer}].calls.push_back(calls_.size() - 1);
    threads_.insert(thread);
  }
}

NcclRanges::Call* NcclRanges::take(std::uint64_t thread, std::int64_t time_ns, std::uint64_t communicator, NameId name,
                                   std::uint64_t bytes, std::int32_t peer) {
  const bool own = threads_.contains(thread);
  if (!own && !counts_all_) return nullptr;
  if (!own) sort_by_start();
  const auto found = waiting_.find({own ? thread : any_thread, communicator, name, bytes, peer});
  if (found == waiting_.end()) return nullptr;
  Waiting& waiting = found->second;
  const auto call = [&]() -> Call& { return calls_[waiting.calls[waiting.next]]; };
  const auto passed = [&] { return own ? call().enqueued_ns < time_ns : call().taken; };
  while (waiting.next < waiting.calls.size() && passed()) ++waiting.next;
  if (waiting.next == waiting.calls.size() || call().start_ns > time_ns) return nullptr;
  Call& taken = call();
  ++waiting.next;
  taken.taken = true;
  return &taken;
}

// The calls of any thread: they were added thread by thread.
void NcclRanges::sort_by_start() {
  if (sorted_) return;
  sorted_ = true;
  for (auto& [key, waiting] : waiting_) {
    if (std::get<0>(key) != any_thread) continue;
    std::ranges::stable_sort(waiting.calls, {}, [&](std::size_t call) { return calls_[call].start_ns; });
  }
}

std::uint32_t NcclRanges::members(std::uint64_t communicator) const {
  const auto found = members_.find(communicator);
  return found != members_.end() ? found->second : 0;
}

}  // namespace paceline::analysis
