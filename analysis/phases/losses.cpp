// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/losses.h"

#include <algorithm>

namespace paceline::analysis {
namespace {

// The causes whose events may be the begin or the end of a range.
constexpr const char* structural_causes[] = {"no_free_chunk", "disk", "interrupted", "other"};

void add_cause(RankLosses& losses, const std::string& cause) {
  if (std::ranges::find(losses.causes, cause) == losses.causes.end()) losses.causes.push_back(cause);
}

}  // namespace

RankLosses losses_of(const Rank& rank) {
  RankLosses losses;
  std::uint64_t located = 0;
  const auto add = [&](const std::vector<LostInterval>& stretches, bool main) {
    for (const LostInterval& loss : stretches) {
      located += loss.events;
      (main ? losses.main_thread : losses.other_threads) = true;
      add_cause(losses, loss.cause);
    }
  };
  for (const Track& track : rank.tracks) add(track.lost, track.main);
  add(rank.lost, true);
  std::uint64_t counted = 0;
  for (const char* cause : structural_causes) {
    const auto found = rank.dropped.find(cause);
    if (found == rank.dropped.end() || found->second == 0) continue;
    counted += found->second;
    add_cause(losses, cause);
  }
  losses.events = std::max(counted, located);
  if (counted > located) {
    losses.located = false;
    losses.main_thread = true;  // possibly
  }
  if (rank.damaged) {
    losses.main_thread = true;
    add_cause(losses, "damage");
  }
  for (const Gap& gap : rank.gaps) {
    if (gap.lost) losses.main_ns += gap.end_ns - gap.start_ns;
  }
  return losses;
}

std::vector<std::int64_t> touched_iterations(const Rank& rank, const std::vector<Iteration>& iterations) {
  std::vector<std::int64_t> touched;
  for (const Iteration& iteration : iterations) {
    if (iteration.lost) touched.push_back(iteration.number);
  }
  for (const LostInterval& loss : main_thread_losses(rank)) {
    const auto after =
        std::ranges::find_if(iterations, [&](const Iteration& iteration) { return iteration.start_ns > loss.end_ns; });
    if (after == iterations.begin() || after == iterations.end()) continue;
    // Iterations without numbers of their own are counted, so none seems to be missing.
    for (std::int64_t number = std::prev(after)->number + 1; number < after->number; ++number) {
      touched.push_back(number);
      if (touched.size() > 1'000'000) break;  // numbers with such jumps do not count iterations
    }
  }
  std::ranges::sort(touched);
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

}  // namespace paceline::analysis
