// SPDX-License-Identifier: Apache-2.0
// Finds allreduces for which the trace has only NVTX ranges, no recorded collective call.
#include <algorithm>

#include "analysis/graph/dependencies.h"

namespace paceline::analysis {
namespace range_collectives {

constexpr std::uint64_t small_bytes = 256;  // of a collective in which ranks agree on some numbers

// The calls inside the range, which lie on the same track.
std::span<const TimedCall> inside(std::span<const TimedCall> calls, const AllreduceRange& range) {
  const auto first = std::ranges::lower_bound(calls, std::pair(range.track, range.start_ns), {},
                                              [](const auto& call) { return std::pair(call.track, call.start_ns); });
  auto last = first;
  while (last != calls.end() && last->track == range.track && last->start_ns < range.end_ns) ++last;
  return {first, last};
}

}  // namespace range_collectives

std::vector<AllreduceRange> allreduce_ranges(const Trace& trace, std::uint32_t rank, std::span<const TimedCall> calls) {
  using namespace range_collectives;
  const NameId category = trace.names.find("allreduce"), payload = trace.names.find("payload");
  std::vector<AllreduceRange> ranges;
  if (category == 0 || payload == 0) return ranges;
  std::vector<std::uint8_t> wanted;
  for (const Kind& kind : trace.kinds) wanted.push_back(kind.category == category);
  const Rank& of = trace.ranks[rank];
  for (std::uint32_t t = 0; t < of.tracks.size(); ++t) {
    const Slices& slices = of.tracks[t].slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (wanted[slices.kind[i]] == 0) continue;
      const auto bytes = slices.argument(i, payload);
      if (!bytes || bytes->whole() == 0) continue;
      AllreduceRange range{
          rank, t, trace.kind_of(slices, i).name, bytes->whole(), slices.start_ns[i], slices.end_ns(i)};
      std::uint64_t moved = 0;
      for (const TimedCall& call : inside(calls, range)) {
        moved += call.bytes;
        if (call.bytes <= small_bytes) range.end_ns = std::min(range.end_ns, call.start_ns);
      }
      // Otherwise the calls themselves are the collectives.
      if (2 * moved < range.bytes) ranges.push_back(range);
    }
  }
  std::ranges::stable_sort(ranges, {}, &AllreduceRange::start_ns);
  return ranges;
}

}  // namespace paceline::analysis
