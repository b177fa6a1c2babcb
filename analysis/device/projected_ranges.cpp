// SPDX-License-Identifier: Apache-2.0
#include "analysis/device/projected_ranges.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace paceline::analysis {
namespace range_projecting {

// Work on the stream, and the call that launched it.
struct Launched {
  std::uint32_t call = 0;  // index of the slice
  std::int64_t start_ns = 0, end_ns = 0;
};

struct Projected {
  ProjectedRanges::Origin origin;
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::max(), end_ns = 0;
  unsigned depth = 0;

  void add(const Projected& inner) {
    start_ns = std::min(start_ns, inner.start_ns);
    end_ns = std::max(end_ns, inner.end_ns);
    origin.operations += inner.origin.operations;
    origin.work_ns += inner.origin.work_ns;
  }
};

std::map<std::uint32_t, std::vector<Launched>> launches_by_track(const Slices& work, const Correlations& correlations) {
  std::map<std::uint32_t, std::vector<Launched>> launches;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto calls = correlations.calls_of(work, i);
    if (!calls.empty()) launches[calls.back().track].push_back({calls.back().slice, work.start_ns[i], work.end_ns(i)});
  }
  for (auto& [track, of] : launches) std::ranges::stable_sort(of, {}, &Launched::call);
  return launches;
}

std::vector<bool> kinds_of_ranges(const Trace& trace) {
  std::vector<bool> ranges(trace.kinds.size());
  for (std::size_t kind = 0; kind < ranges.size(); ++kind) {
    const std::string_view domain = trace.names[trace.kinds[kind].domain];
    ranges[kind] = domain != "cuda" && domain != "mpi" && domain != "nccl" && domain != "NCCL";
  }
  return ranges;
}

// Appends the ranges of one thread that launched work, each after those inside it.
void project(const Slices& slices, std::uint32_t track, const std::vector<Launched>& launches,
             const std::vector<bool>& is_range, std::vector<Projected>& found) {
  std::vector<Projected> open;
  const auto close_until = [&](std::int64_t ns) {
    while (!open.empty() && slices.end_ns(open.back().origin.slice) <= ns) {
      const Projected closed = open.back();
      open.pop_back();
      if (closed.origin.operations == 0) continue;
      found.push_back(closed);
      if (!open.empty()) open.back().add(closed);
    }
  };
  std::uint32_t next = 0;
  for (const Launched& launched : launches) {
    for (; next <= launched.call; ++next) {
      close_until(slices.start_ns[next]);
      if (!is_range[slices.kind[next]]) continue;
      open.push_back({.origin = {track, next}, .depth = static_cast<unsigned>(open.size())});
    }
    if (open.empty()) continue;
    open.back().add({.origin = {.operations = 1, .work_ns = launched.end_ns - launched.start_ns},
                     .start_ns = launched.start_ns,
                     .end_ns = launched.end_ns});
  }
  close_until(std::numeric_limits<std::int64_t>::max());
}

}  // namespace range_projecting

ProjectedRanges projected_ranges(const Trace& trace, const Rank& rank, std::size_t stream,
                                 const Correlations& correlations) {
  const std::vector<bool> is_range = range_projecting::kinds_of_ranges(trace);
  std::vector<range_projecting::Projected> all;
  unsigned levels = 0;
  for (const auto& [track, launches] : range_projecting::launches_by_track(rank.tracks[stream].slices, correlations)) {
    const std::size_t first = all.size();
    range_projecting::project(rank.tracks[track].slices, track, launches, is_range, all);
    const unsigned above = levels;
    for (std::size_t i = first; i < all.size(); ++i) {
      all[i].depth += above;
      levels = std::max(levels, all[i].depth + 1);
    }
  }
  std::ranges::stable_sort(all, {}, [](const auto& one) { return std::tuple(one.start_ns, one.depth); });
  // Work of one stream may overlap a little, where a kernel starts before its predecessor has ended.
  std::vector<std::size_t> last(levels, all.size());
  ProjectedRanges projected;
  Slices& slices = projected.slices;
  for (const range_projecting::Projected& one : all) {
    if (const std::size_t before = std::exchange(last[one.depth], slices.size()); before < slices.size()) {
      const std::int64_t room = one.start_ns - slices.start_ns[before];
      slices.duration_ns[before] = std::min(slices.duration_ns[before], room);
    }
    slices.start_ns.push_back(one.start_ns);
    slices.duration_ns.push_back(one.end_ns - one.start_ns);
    slices.kind.push_back(rank.tracks[one.origin.track].slices.kind[one.origin.slice]);
    slices.depth.push_back(static_cast<std::uint16_t>(one.depth));
    slices.record.push_back(0);
    projected.origins.push_back(one.origin);
  }
  return projected;
}

}  // namespace paceline::analysis
