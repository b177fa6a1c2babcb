// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/lateness_hosts.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace paceline::analysis {
namespace lateness_host_parts {

// The ranks of each host; empty if the hosts cannot be compared.
std::vector<std::vector<std::size_t>> comparable_hosts(std::span<const std::uint32_t> host_of_rank) {
  std::vector<std::vector<std::size_t>> hosts;
  for (std::size_t r = 0; r < host_of_rank.size(); ++r) {
    if (host_of_rank[r] >= hosts.size()) hosts.resize(host_of_rank[r] + 1);
    hosts[host_of_rank[r]].push_back(r);
  }
  const bool alike = std::ranges::all_of(hosts, [&](const auto& host) { return host.size() == hosts[0].size(); });
  if (hosts.size() < 2 || hosts[0].size() < 2 || !alike) hosts.clear();
  return hosts;
}

double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace lateness_host_parts

LatenessTable lateness_of_hosts(const LatenessTable& ranks, std::span<const std::uint32_t> host_of_rank) {
  using namespace lateness_host_parts;
  LatenessTable table;
  if (host_of_rank.size() != ranks.ranks) return table;
  const std::vector<std::vector<std::size_t>> hosts = comparable_hosts(host_of_rank);
  if (hosts.empty()) return table;
  const auto n = static_cast<double>(ranks.ranks), in_host = static_cast<double>(hosts[0].size());
  std::vector<double> arrivals(hosts.size()), of_host;
  for (std::size_t i = 0; i < ranks.iterations(); ++i) {
    const std::span late = std::span(ranks.late_ns).subspan(i * ranks.ranks, ranks.ranks);
    const std::span others_wait = std::span(ranks.others_wait_ns).subspan(i * ranks.ranks, ranks.ranks);
    // The mean wait of the other ranks is (sum of all waits - own wait) / (n - 1), so their sum is that of all waits.
    const double waited = std::accumulate(others_wait.begin(), others_wait.end(), 0.0);
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      of_host.clear();
      for (const std::size_t r : hosts[h]) of_host.push_back(late[r]);
      arrivals[h] = lower_median(of_host);
    }
    LatenessRow row;
    row.step_ns = ranks.step_ns[i];
    add_collective(row, arrivals, std::vector<double>(hosts.size(), 0));
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      double own = 0;
      for (const std::size_t r : hosts[h]) own += waited - (n - 1) * others_wait[r];
      row.others_wait_ns[h] = (waited - own) / (n - in_host);
    }
    add_iteration(table, ranks.numbers[i], row);
  }
  table.collectives = ranks.collectives;
  return table;
}

}  // namespace paceline::analysis
