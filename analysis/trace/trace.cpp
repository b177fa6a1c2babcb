// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/trace.h"

#include <algorithm>

namespace paceline::analysis {

std::int64_t Rank::recorded_ns() const {
  std::int64_t ns = end_ns - start_ns;
  for (const Gap& gap : gaps) ns -= gap.end_ns - gap.start_ns;
  return ns;
}

std::int64_t Trace::span_ns() const {
  std::int64_t end = 0;
  for (const Rank& rank : ranks) end = std::max(end, rank.end_ns);
  return end;
}

std::vector<LostInterval> merged_losses(std::vector<LostInterval> losses) {
  std::ranges::stable_sort(losses, {}, &LostInterval::start_ns);
  std::vector<LostInterval> merged;
  for (LostInterval& loss : losses) {
    if (merged.empty() || loss.start_ns > merged.back().end_ns) {
      merged.push_back(std::move(loss));
      continue;
    }
    LostInterval& into = merged.back();
    into.end_ns = std::max(into.end_ns, loss.end_ns);
    into.events += loss.events;
    if (into.cause.empty()) into.cause = loss.cause;
  }
  return merged;
}

std::vector<LostInterval> main_thread_losses(const Rank& rank) {
  std::vector<LostInterval> losses = rank.lost;
  if (const Track* main = main_track(rank)) losses.insert(losses.end(), main->lost.begin(), main->lost.end());
  return merged_losses(std::move(losses));
}

const Track* main_track(const Rank& rank) {
  const auto found =
      std::find_if(rank.tracks.begin(), rank.tracks.end(), [](const Track& track) { return track.main; });
  return found == rank.tracks.end() ? nullptr : &*found;
}

}  // namespace paceline::analysis
