// SPDX-License-Identifier: Apache-2.0
// What the facts of machine and process (RankSummary::facts) show about the ranks of a run.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run/rank_summary.h"

namespace paceline::analysis {

// Reads a list of CPUs as Linux writes it: "0-2,8" as 0, 1, 2, 8. Empty where the text is not such a list. Numbers from
// 65536 on are left out.
std::set<unsigned> numbers_of(std::string_view list);

// The fact of a Rank or RankSummary, or "" where it is not known.
template <class AnyRank>
const std::string& fact(const AnyRank& rank, const std::string& key) {
  static const std::string none;
  const auto found = rank.facts.find(key);
  return found == rank.facts.end() ? none : found->second;
}

// Ranks of one host whose CPU affinity masks overlap and together contain fewer CPUs than there are ranks, so that some
// rank always waits for a CPU.
struct CrowdedCpus {
  std::vector<std::size_t> ranks;  // indices into the given ranks
  std::set<unsigned> cpus;
  bool bound = false;  // the host has more CPUs than these
};
std::vector<CrowdedCpus> crowded_cpus(std::span<const RankSummary> ranks);

// All facts as lines for people: the hosts, then the ranks, with equal ranks on one line. Empty where nothing is known.
std::vector<std::string> machine_lines(std::span<const RankSummary> ranks);

}  // namespace paceline::analysis
