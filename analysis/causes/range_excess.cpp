// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/range_excess.h"

#include <algorithm>

#include "analysis/trace/innermost.h"

namespace paceline::analysis {

RangeProfile range_profile(const PhaseTable& phases, const Trace& trace, const Rank& rank, const RankActivity& activity,
                           std::span<const BlockedTime> blocked, std::span<const Iteration> iterations,
                           const std::function<bool(const Iteration&)>& chosen) {
  const std::size_t kinds = trace.kinds.size();
  RangeProfile profile{.kinds = std::vector<LossParts>(2 * kinds + 1)};
  const Track* main = main_track(rank);
  std::vector<const Iteration*> wanted;
  for (const Iteration& iteration : iterations) {
    if (iteration.finished && chosen(iteration)) wanted.push_back(&iteration);
  }
  if (main == nullptr || wanted.empty()) return profile;
  profile.iterations = static_cast<double>(wanted.size());
  const auto end_ns = [](const Iteration* of) { return of->start_ns + of->duration_ns; };
  auto at = wanted.begin();
  std::size_t last = kinds;  // the kind of the last range inside an iteration
  ActivityWalk walk(activity, blocked, wanted.front()->start_ns);
  each_innermost(main->slices, end_ns(wanted.back()), [&](std::int64_t from, std::int64_t until, std::uint32_t slice) {
    while (at != wanted.end() && end_ns(*at) <= from) ++at;
    for (auto of = at; of != wanted.end() && (*of)->start_ns < until; ++of) {
      // The iteration itself and what is around it say nothing about the place: the range before does.
      const std::uint32_t kind = main->slices.kind[slice];
      const bool inside = !phases.iteration(kind) && main->slices.start_ns[slice] >= (*of)->start_ns &&
                          main->slices.end_ns(slice) <= end_ns(*of);
      if (inside) last = kind;
      profile.kinds[inside ? last : kinds + last].add(
          walk.parts_outside(std::max(from, (*of)->start_ns), std::min(until, end_ns(*of))), 1 / profile.iterations);
    }
  });
  return profile;
}

RangeProfile mean_profile(std::span<const RangeProfile> profiles) {
  RangeProfile mean;
  for (const RangeProfile& profile : profiles) mean.iterations += profile.iterations;
  for (const RangeProfile& profile : profiles) {
    mean.kinds.resize(std::max(mean.kinds.size(), profile.kinds.size()));
    if (profile.iterations == 0) continue;
    for (std::size_t kind = 0; kind < profile.kinds.size(); ++kind) {
      mean.kinds[kind].add(profile.kinds[kind], profile.iterations / mean.iterations);
    }
  }
  return mean;
}

std::optional<CausePlace> largest_excess(const Trace& trace, const RangeProfile& longer, const RangeProfile& usual) {
  constexpr double least_share = 0.25;
  if (longer.iterations == 0 || usual.iterations == 0) return std::nullopt;
  double all = 0, most = 0;
  CausePlace place;
  const std::size_t kinds = trace.kinds.size();
  for (std::size_t kind = 0; kind < longer.kinds.size(); ++kind) {
    for (std::size_t cause = 0; cause < loss_cause_count; ++cause) {
      const double excess = longer.kinds[kind].ns[cause] - usual.kinds[kind].ns[cause];
      all += std::max(excess, 0.0);
      if (excess <= most || kind == 2 * kinds) continue;
      most = excess;
      place = {.range = trace.names[trace.kinds[kind % kinds].name],
               .after = kind >= kinds,
               .cause = static_cast<LossCause>(cause)};
    }
  }
  if (most <= 0 || most < least_share * all) return std::nullopt;
  place.share = most / all;
  return place;
}

}  // namespace paceline::analysis
