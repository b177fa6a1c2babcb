// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/range_collectives.h"

#include <algorithm>
#include <map>
#include <set>

namespace paceline::analysis {
namespace range_collectives {

constexpr std::uint64_t small_bytes = 256;  // of a collective in which ranks agree on some numbers
constexpr double left_early_share = 0.1;

std::uint32_t operation_of(CollectiveCalls& calls, const std::string& name) {
  const auto found = std::ranges::find(calls.operations, name);
  const auto place = static_cast<std::uint32_t>(found - calls.operations.begin());
  if (found == calls.operations.end()) calls.operations.push_back(name);
  return place;
}

using Calls = std::vector<const CollectiveCall*>;

// Whether the ranks' calls of one name are collectives.
bool are_common(const std::vector<Calls>& of_ranks) {
  const Calls& first = of_ranks.front();
  std::size_t left_early = 0;
  for (const Calls& of : of_ranks) {
    if (of.size() != first.size()) return false;
  }
  for (std::size_t k = 0; k < first.size(); ++k) {
    std::int64_t last_start = first[k]->start_ns, first_end = first[k]->end_ns;
    for (const Calls& of : of_ranks) {
      if (of[k]->bytes != first[k]->bytes) return false;
      last_start = std::max(last_start, of[k]->start_ns);
      first_end = std::min(first_end, of[k]->end_ns);
    }
    left_early += first_end < last_start;
  }
  return static_cast<double>(left_early) <= left_early_share * static_cast<double>(first.size());
}

}  // namespace range_collectives

void add_range_calls(CollectiveCalls& calls, const Trace& trace, const Rank& rank) {
  using namespace range_collectives;
  const NameId category = trace.names.find("allreduce"), payload = trace.names.find("payload"),
               unfinished = trace.names.find("unfinished");
  if (category == 0 || payload == 0 || calls.world_size < 2) return;
  std::vector<std::uint8_t> wanted;
  for (const Kind& kind : trace.kinds) wanted.push_back(kind.category == category);
  if (std::ranges::find(wanted, 1) == wanted.end()) return;
  std::vector<CollectiveCall> ranges, inner = calls.calls;
  std::ranges::sort(inner, {}, &CollectiveCall::start_ns);
  for (std::uint32_t t = 0; t < rank.tracks.size(); ++t) {
    const Track& track = rank.tracks[t];
    const Slices& slices = track.slices;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      if (wanted[slices.kind[i]] == 0) continue;
      const auto bytes = slices.argument(i, payload);
      if (!bytes || bytes->whole() == 0 || (unfinished != 0 && slices.number(i, unfinished))) continue;
      CollectiveCall range{.bytes = bytes->whole(),
                           .members = static_cast<std::uint32_t>(calls.world_size),
                           .blocking = blocking_of(track),
                           .counted = true,
                           .of_range = true,
                           .start_ns = slices.start_ns[i],
                           .end_ns = slices.end_ns(i),
                           .track = t,
                           .slice = i};
      range.blocked_from_ns = range.polled_from_ns = range.start_ns;
      std::uint64_t moved = 0;
      auto call = std::ranges::lower_bound(inner, range.start_ns, {}, &CollectiveCall::start_ns);
      for (; call != inner.end() && call->start_ns < range.end_ns; ++call) {
        moved += call->bytes;
        if (call->track == t && call->bytes <= small_bytes) range.end_ns = std::min(range.end_ns, call->start_ns);
      }
      if (2 * moved >= range.bytes) continue;
      range.operation = operation_of(calls, trace.names[trace.kind_of(slices, i).name]);
      ranges.push_back(range);
    }
  }
  std::map<std::uint32_t, std::uint64_t> numbers;
  std::ranges::stable_sort(ranges, {}, &CollectiveCall::start_ns);
  for (CollectiveCall& range : ranges) range.sequence = numbers[range.operation]++;
  calls.calls.insert(calls.calls.end(), ranges.begin(), ranges.end());
  std::ranges::stable_sort(calls.calls, {},
                           [](const CollectiveCall& call) { return std::pair(call.track, call.start_ns); });
}

void keep_common_ranges(std::vector<CollectiveCalls>& ranks) {
  using namespace range_collectives;
  std::map<std::string, std::vector<Calls>> by_name;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const CollectiveCall& call : ranks[r].calls) {
      if (!call.of_range) continue;
      auto& of_ranks = by_name[ranks[r].operations[call.operation]];
      of_ranks.resize(ranks.size());
      of_ranks[r].push_back(&call);
    }
  }
  std::set<std::string> others;
  for (auto& [name, of_ranks] : by_name) {
    for (Calls& calls : of_ranks) std::ranges::sort(calls, {}, &CollectiveCall::sequence);
    if (!are_common(of_ranks)) others.insert(name);
  }
  if (others.empty()) return;
  for (CollectiveCalls& of : ranks) {
    std::erase_if(of.calls, [&](const CollectiveCall& call) {
      return call.of_range && others.contains(of.operations[call.operation]);
    });
  }
}

}  // namespace paceline::analysis
