// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/collective_index.h"

#include <algorithm>
#include <utility>

namespace paceline::viewer {
namespace collective_index {

// The call of this rank among those of a collective, which has one.
const CollectiveIndex::Call& of_rank(std::span<const CollectiveIndex::Call> calls, std::size_t rank) {
  return *std::ranges::lower_bound(calls, rank, {}, &CollectiveIndex::Call::rank);
}

}  // namespace collective_index

CollectiveIndex::CollectiveIndex(const analysis::Collectives& collectives,
                                 std::span<const analysis::CollectiveCalls> ranks)
    : places_(ranks.size()), times_(ranks.size()) {
  for (std::uint32_t number = 0; number < collectives.matched.size(); ++number) {
    first_.push_back(calls_.size());
    for (const analysis::MemberCall& call : collectives.matched[number].calls) {
      const analysis::CollectiveCall& place = ranks[call.rank].calls[call.call];
      calls_.push_back({call.rank, place.track, place.slice, call.blocked_from_ns, call.end_ns});
      places_[call.rank].push_back(number);
      times_[call.rank].push_back(number);
    }
  }
  first_.push_back(calls_.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto own = [&](std::uint32_t number) -> const Call& {
      return collective_index::of_rank(calls_of(number), rank);
    };
    std::ranges::sort(places_[rank], {},
                      [&](std::uint32_t number) { return std::pair(own(number).track, own(number).slice); });
    std::ranges::sort(times_[rank], {}, [&](std::uint32_t number) { return own(number).from_ns; });
  }
}

std::span<const CollectiveIndex::Call> CollectiveIndex::calls_of(std::uint32_t collective) const {
  return std::span(calls_).subspan(first_[collective], first_[collective + 1] - first_[collective]);
}

std::span<const CollectiveIndex::Call> CollectiveIndex::with(const SliceRef& slice) const {
  if (slice.mark || slice.rank >= places_.size()) return {};
  const auto place_of = [&](std::uint32_t number) {
    const Call& call = collective_index::of_rank(calls_of(number), slice.rank);
    return std::pair<std::size_t, std::uint32_t>(call.track, call.slice);
  };
  const std::pair wanted(slice.track, slice.slice);
  const auto found = std::ranges::lower_bound(places_[slice.rank], wanted, {}, place_of);
  if (found == places_[slice.rank].end() || place_of(*found) != wanted) return {};
  return calls_of(*found);
}

std::optional<SliceRef> CollectiveIndex::at(std::size_t rank, double time_ns, double slack_ns) const {
  if (rank >= times_.size()) return std::nullopt;
  const auto own = [&](std::uint32_t number) -> const Call& {
    return collective_index::of_rank(calls_of(number), rank);
  };
  const auto after = std::ranges::partition_point(
      times_[rank], [&](std::uint32_t number) { return double(own(number).from_ns) <= time_ns + slack_ns; });
  if (after == times_[rank].begin()) return std::nullopt;
  const Call& call = own(*(after - 1));
  return double(call.end_ns) + slack_ns >= time_ns ? std::optional(call.ref()) : std::nullopt;
}

}  // namespace paceline::viewer
