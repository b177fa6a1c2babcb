// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/run_links.h"

#include <algorithm>
#include <iterator>

namespace paceline::analysis {

std::vector<LinkEnd> link_ends(const RunAnalysis& run) {
  std::vector<LinkEnd> ends;
  for (const RankSummary& rank : run.per_rank) {
    ends.push_back({.machine = rank.host + "\n" + rank.boot_id, .host = rank.host, .facts = &rank.facts});
  }
  return ends;
}

std::optional<LinkRate> rated_link_of(const RunAnalysis& run, const CollectiveRow& row) {
  const std::vector<LinkEnd> ends = link_ends(run);
  const auto given = run.config.number("link_gbit");
  if (row.members != ends.size() && !given && on_several_hosts(ends)) return std::nullopt;
  return rated_link(ends, row.operation.starts_with("nccl"), given);
}

void add_links(const Messages& messages, RunAnalysis& run) {
  if (!run.losses.located) return;
  const std::vector<LinkEnd> ends = link_ends(run);
  std::vector<std::span<const Iteration>> iterations;
  for (const RankSummary& rank : run.per_rank) iterations.emplace_back(rank.iterations);
  run.link_times = link_times(messages, iterations, ends, run.clock_error_ns);
  std::ranges::move(link_uses(messages, ends), std::back_inserter(run.link_uses));
}

}  // namespace paceline::analysis
