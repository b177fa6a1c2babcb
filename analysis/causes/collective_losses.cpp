// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/collective_losses.h"

#include <algorithm>
#include <optional>

#include "analysis/causes/transfer_profile.h"
#include "analysis/phases/selection.h"

namespace paceline::analysis {
namespace collective_loss_parts {

constexpr std::size_t most_looked_at = 256;  // of the last rank's intervals, for a collective of both ranks

const MemberCall* call_of(const Collective& collective, std::size_t rank) {
  const auto found = std::ranges::lower_bound(collective.calls, rank, {}, &MemberCall::rank);
  return found == collective.calls.end() || found->rank != rank ? nullptr : &*found;
}

const Iteration* numbered(std::span<const Iteration> iterations, std::int64_t number) {
  const auto found = std::ranges::find(iterations, number, &Iteration::number);
  return found == iterations.end() ? nullptr : &*found;
}

struct Run {
  const Collectives& collectives;
  std::span<const RankActivity> activities;
  std::span<const std::span<const Iteration>> iterations;

  // When the last rank and the waiting rank were last known to be level: the end of a collective of both, or the
  // beginning of an iteration.
  struct Level {
    std::int64_t last_ns = 0, waiting_ns = 0;
    std::optional<std::uint32_t> collective = {};
  };
  std::optional<Level> level_before(std::size_t last, std::size_t rank, std::int64_t arrival_ns,
                                    std::int64_t start_ns) const {
    const auto& blocked = collectives.blocked[last];
    auto before = std::ranges::upper_bound(blocked, arrival_ns, {}, &BlockedTime::end_ns);
    for (std::size_t looked_at = 0; before != blocked.begin() && looked_at < most_looked_at; ++looked_at) {
      --before;
      const MemberCall* own = call_of(collectives.matched[before->collective], rank);
      if (own != nullptr && own->end_ns <= start_ns) return Level{before->end_ns, own->end_ns, before->collective};
    }
    const Iteration* iteration = iteration_at(iterations[last], arrival_ns);
    if (iteration == nullptr) return std::nullopt;
    const Iteration* own = iteration_at(iterations[rank], start_ns);
    if (own == nullptr || own->number != iteration->number) own = numbered(iterations[rank], iteration->number);
    if (own == nullptr || own->start_ns > start_ns) return std::nullopt;
    return Level{iteration->start_ns, own->start_ns};
  }

  LossParts waiting(std::size_t rank, const BlockedTime& interval) const {
    LossParts unknown;
    const auto waited_ns = static_cast<double>(interval.wait_ns());
    unknown[LossCause::unknown] = waited_ns;
    const Collective& awaited = collectives.matched[interval.collective];
    const std::size_t last = awaited.last_rank;
    if (waited_ns == 0 || last == rank) return unknown;
    const auto level = level_before(last, rank, awaited.last_start_ns, interval.start_ns);
    if (!level) return unknown;
    const std::int64_t left_later_ns =
        level->collective ? std::clamp<std::int64_t>(level->last_ns - level->waiting_ns, 0, interval.wait_ns()) : 0;
    LossParts parts =
        excess_parts(activities[last].parts_outside(collectives.blocked[last], level->last_ns, awaited.last_start_ns),
                     activities[rank].parts_outside(collectives.blocked[rank], level->waiting_ns, interval.start_ns),
                     waited_ns - static_cast<double>(left_later_ns));
    if (left_later_ns > 0) {
      parts.add(profile_of(*level->collective).parts(level->last_ns - left_later_ns, level->last_ns), 1);
    }
    return parts;
  }

  // The ranks that wait in a collective have left the same one before, in most runs.
  const TransferProfile& profile_of(std::uint32_t collective) const {
    if (!latest || latest->first != collective) latest.emplace(collective, profile(collective));
    return latest->second;
  }
  TransferProfile profile(std::uint32_t number) const {
    const Collective& collective = collectives.matched[number];
    return {collective, collectives.operations[collective.operation].starts_with("MPI_"), activities};
  }
  mutable std::optional<std::pair<std::uint32_t, TransferProfile>> latest = {};
};

struct Place {
  std::uint32_t collective, rank;
  const BlockedTime* interval;
};

}  // namespace collective_loss_parts

void each_collective_loss(const Collectives& collectives, std::span<const RankActivity> activities,
                          std::span<const std::span<const Iteration>> iterations,
                          const std::function<void(const CollectiveLoss&)>& visit) {
  using namespace collective_loss_parts;
  const Run run{collectives, activities, iterations};
  std::vector<Place> places;
  for (std::uint32_t r = 0; r < collectives.blocked.size(); ++r) {
    for (const BlockedTime& interval : collectives.blocked[r]) places.push_back({interval.collective, r, &interval});
  }
  std::ranges::stable_sort(places, {}, &Place::collective);
  for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    const TransferProfile profile = run.profile(places[begin].collective);
    for (; end < places.size() && places[end].collective == places[begin].collective; ++end) {
      const BlockedTime& interval = *places[end].interval;
      visit({.rank = places[end].rank,
             .interval = interval,
             .waiting = run.waiting(places[end].rank, interval),
             .transfer = profile.parts(interval.start_ns + interval.wait_ns(), interval.end_ns)});
    }
  }
}

}  // namespace paceline::analysis
