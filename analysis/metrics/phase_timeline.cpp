#include "analysis/metrics/phase_timeline.h"

#include <algorithm>

namespace paceline::analysis {
namespace phase_timeline_parts {

constexpr std::size_t slices_apart = 128;  // two checkpoints

}  // namespace phase_timeline_parts

PhaseTimeline::PhaseTimeline(const PhaseTable& table, const Rank& rank) : walk_(table, rank) {
  whole_.position = walk_.start();
  checkpoints_.push_back(whole_);
  const Slices& slices = walk_.slices();
  for (std::size_t i = 0; i < slices.size(); i += phase_timeline_parts::slices_apart) {
    advance(whole_, slices.start_ns[i]);
    if (whole_.position.time_ns > checkpoints_.back().position.time_ns) checkpoints_.push_back(whole_);
  }
  advance(whole_, walk_.end_ns());
}

void PhaseTimeline::Seen::add(const PhaseInterval& interval) {
  totals[static_cast<std::size_t>(interval.phase)] += interval.end_ns - interval.start_ns;
  if (interval.start_ns != last.end_ns || interval.phase != last.phase || intervals == 0) ++intervals;
  last = interval;
}

void PhaseTimeline::advance(Seen& seen, std::int64_t time_ns) const {
  walk_.advance(seen.position, time_ns, [&](const PhaseInterval& interval) { seen.add(interval); });
}

// The last checkpoint at or before the time; the first one where none is.
const PhaseTimeline::Seen& PhaseTimeline::checkpoint(std::int64_t time_ns) const {
  const auto after =
      std::ranges::upper_bound(checkpoints_, time_ns, {}, [](const Seen& seen) { return seen.position.time_ns; });
  return after == checkpoints_.begin() ? *after : *std::prev(after);
}

PhaseTimeline::Seen PhaseTimeline::before(std::int64_t time_ns) const {
  if (time_ns >= walk_.end_ns()) return whole_;
  Seen seen = checkpoint(time_ns);
  advance(seen, time_ns);
  return seen;
}

PhaseTimeline::Totals PhaseTimeline::between(std::int64_t from_ns, std::int64_t to_ns) const {
  if (to_ns <= from_ns) return {};
  Totals totals = until(to_ns);
  const Totals earlier = until(from_ns);
  for (std::size_t phase = 0; phase < phase_count; ++phase) totals[phase] -= earlier[phase];
  return totals;
}

std::size_t PhaseTimeline::count_between(std::int64_t from_ns, std::int64_t to_ns) const {
  return to_ns <= from_ns ? 0 : before(to_ns).intervals - before(from_ns).intervals;
}

std::vector<PhaseInterval> PhaseTimeline::intervals(std::int64_t from_ns, std::int64_t to_ns) const {
  std::vector<PhaseInterval> found;
  PhaseWalk::Position position = checkpoint(from_ns).position;
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

}  // namespace paceline::analysis
