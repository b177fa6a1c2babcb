#include "analysis/metrics/phase_timeline.h"

#include <algorithm>

namespace paceline::analysis {
namespace phase_timeline_parts {

constexpr std::size_t slices_apart = 512;

auto adding_to(std::array<std::int64_t, phase_count>& totals) {
  return [&totals](const PhaseInterval& interval) {
    totals[static_cast<std::size_t>(interval.phase)] += interval.end_ns - interval.start_ns;
  };
}

}  // namespace phase_timeline_parts

using namespace phase_timeline_parts;

PhaseTimeline::PhaseTimeline(const PhaseTable& table, const Rank& rank) : walk_(table, rank) {
  PhaseWalk::Position position = walk_.start();
  const Slices& slices = walk_.slices();
  for (std::size_t i = 0; i < slices.size(); i += slices_apart) {
    walk_.advance(position, slices.start_ns[i], adding_to(totals_));
    if (checkpoints_.empty() || position.time_ns > checkpoints_.back().position.time_ns) {
      checkpoints_.push_back({position, totals_});
    }
  }
  if (checkpoints_.empty() || checkpoints_.front().position.time_ns > walk_.start().time_ns) {
    checkpoints_.insert(checkpoints_.begin(), {walk_.start(), {}});
  }
  walk_.advance(position, walk_.end_ns(), adding_to(totals_));
}

// The last one at or before the time; the first one where none is.
const PhaseTimeline::Checkpoint& PhaseTimeline::before(std::int64_t time_ns) const {
  const auto after = std::ranges::upper_bound(checkpoints_, time_ns, {},
                                              [](const Checkpoint& checkpoint) { return checkpoint.position.time_ns; });
  return after == checkpoints_.begin() ? *after : *std::prev(after);
}

std::array<std::int64_t, phase_count> PhaseTimeline::until(std::int64_t time_ns) const {
  if (time_ns >= walk_.end_ns()) return totals_;
  Checkpoint at = before(time_ns);
  walk_.advance(at.position, time_ns, adding_to(at.totals));
  return at.totals;
}

std::array<std::int64_t, phase_count> PhaseTimeline::between(std::int64_t from_ns, std::int64_t to_ns) const {
  if (to_ns <= from_ns) return {};
  auto totals = until(to_ns);
  const auto earlier = until(from_ns);
  for (std::size_t phase = 0; phase < phase_count; ++phase) totals[phase] -= earlier[phase];
  return totals;
}

std::vector<PhaseInterval> PhaseTimeline::intervals(std::int64_t from_ns, std::int64_t to_ns) const {
  std::vector<PhaseInterval> found;
  PhaseWalk::Position position = before(from_ns).position;
  walk_.advance(position, from_ns, [](const PhaseInterval&) {});
  walk_.advance(position, to_ns, [&](const PhaseInterval& interval) {
    if (!found.empty() && found.back().phase == interval.phase && found.back().end_ns == interval.start_ns) {
      found.back().end_ns = interval.end_ns;
    } else {
      found.push_back(interval);
    }
  });
  return found;
}

std::optional<PhaseInterval> PhaseTimeline::at(std::int64_t time_ns) const {
  const auto here = intervals(time_ns, time_ns + 1);
  if (here.empty()) return std::nullopt;
  PhaseInterval whole = here.front();
  // To both sides, ever further, until the interval ends inside what was looked at.
  const std::int64_t first = checkpoints_.front().position.time_ns;
  for (std::int64_t reach = 1'000; whole.start_ns > first; reach *= 4) {
    const std::int64_t from = std::max(first, whole.start_ns - std::min(reach, whole.start_ns - first));
    const std::int64_t known = whole.start_ns;
    const auto left = intervals(from, known + 1);
    if (!left.empty() && left.back().phase == whole.phase) whole.start_ns = left.back().start_ns;
    if (whole.start_ns > from) break;
  }
  for (std::int64_t reach = 1'000; whole.end_ns < walk_.end_ns(); reach *= 4) {
    const std::int64_t to = whole.end_ns + std::min(reach, walk_.end_ns() - whole.end_ns);
    const auto right = intervals(whole.end_ns - 1, to);
    if (!right.empty() && right.front().phase == whole.phase) whole.end_ns = right.front().end_ns;
    if (whole.end_ns < to) break;
  }
  return whole;
}

std::size_t PhaseTimeline::slices_between(std::int64_t from_ns, std::int64_t to_ns) const {
  const auto& starts = walk_.slices().start_ns;
  const auto from = std::ranges::lower_bound(starts, from_ns);
  return static_cast<std::size_t>(std::ranges::lower_bound(from, starts.end(), to_ns) - from);
}

}  // namespace paceline::analysis
