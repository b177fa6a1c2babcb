// SPDX-License-Identifier: Apache-2.0
#include "analysis/device/gpu_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/statistics/distribution.h"
#include "analysis/statistics/sum.h"

namespace paceline::analysis {

namespace kernel_table {

struct Sums {
  RunningMoments moments;
  std::int64_t sum_ns = 0, min_ns = 0, max_ns = 0;
};

// "Memcpy HtoD (pinned -> GPU 0)", "Memset (GPU 0)".
std::string name_of(const Trace& trace, const Kind& kind, NameId from, NameId to) {
  const std::string& name = trace.names[kind.name];
  if (to == 0) return name;
  return from == 0 ? fmt::format("{} ({})", name, trace.names[to])
                   : fmt::format("{} ({} -> {})", name, trace.names[from], trace.names[to]);
}

}  // namespace kernel_table

std::vector<KernelStatistics> gpu_kernels(const Trace& trace, const Rank& rank) {
  using kernel_table::Sums;
  const NameId memcpy = trace.names.find("memcpy"), memset = trace.names.find("memset"),
               from = trace.names.find("from"), to = trace.names.find("to");
  std::vector<Sums> by_kind(trace.kinds.size());
  std::map<std::tuple<KindId, NameId, NameId>, Sums> by_memory;  // of copies and fills
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const KindId kind = track.slices.kind[i];
      const NameId category = trace.kinds[kind].category;
      const bool moves = category != 0 && (category == memcpy || category == memset);
      Sums& sums = moves ? by_memory[{kind, track.slices.text(i, from), track.slices.text(i, to)}] : by_kind[kind];
      const std::int64_t ns = track.slices.duration_ns[i];
      sums.min_ns = sums.moments.count() == 0 ? ns : std::min(sums.min_ns, ns);
      sums.max_ns = std::max(sums.max_ns, ns);
      add_to_sum(sums.sum_ns, ns);
      sums.moments.add(static_cast<double>(ns));
    }
  }
  std::vector<KernelStatistics> kernels;
  const auto add = [&](KindId kind, NameId source, NameId target, const Sums& sums) {
    kernels.push_back({kernel_table::name_of(trace, trace.kinds[kind], source, target),
                       trace.names[trace.kinds[kind].category], sums.moments.count(), sums.sum_ns, sums.min_ns,
                       sums.max_ns, sums.moments.mean(), sums.moments.stddev()});
  };
  for (KindId kind = 0; kind < by_kind.size(); ++kind) {
    if (by_kind[kind].moments.count() > 0) add(kind, 0, 0, by_kind[kind]);
  }
  for (const auto& [key, sums] : by_memory) add(std::get<0>(key), std::get<1>(key), std::get<2>(key), sums);
  std::ranges::stable_sort(kernels, std::ranges::greater{}, &KernelStatistics::sum_ns);
  return kernels;
}

}  // namespace paceline::analysis
