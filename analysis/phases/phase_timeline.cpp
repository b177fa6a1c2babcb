// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/phase_timeline.h"

#include <algorithm>
#include <utility>

namespace paceline::analysis {
namespace phase_timeline_parts {

constexpr std::size_t slices_apart = 128;    // two checkpoints
constexpr std::size_t intervals_apart = 16;  // two sums
constexpr std::uint8_t not_recorded = phase_count;

}  // namespace phase_timeline_parts

using phase_timeline_parts::intervals_apart;
using phase_timeline_parts::not_recorded;

PhaseTimeline::PhaseTimeline(const PhaseTable& table, const Rank& rank, const Intervals& exposed, double kept_per_slice)
    : walk_(table, rank, exposed) {
  const Slices& slices = walk_.slices();
  constexpr double always_room_for = 1000;  // slices: keeping costs nothing in a short run
  const auto most_kept = static_cast<std::size_t>(kept_per_slice * std::max(double(slices.size()), always_room_for));
  bool keeping = most_kept > 0;
  whole_.position = walk_.start();
  checkpoints_.push_back(whole_);
  const auto advance_whole = [&](std::int64_t time_ns) {
    walk_.advance(whole_.position, time_ns, [&](const PhaseInterval& interval) {
      const std::int64_t last_end_ns = whole_.last.end_ns;
      const bool first = whole_.intervals == 0, is_new = whole_.add(interval);
      if (!keeping || !is_new) return;
      if (!first && interval.start_ns > last_end_ns) starts_.push_back(last_end_ns), phases_.push_back(not_recorded);
      starts_.push_back(interval.start_ns), phases_.push_back(static_cast<std::uint8_t>(interval.phase));
    });
  };
  for (std::size_t i = 0; i < slices.size(); i += phase_timeline_parts::slices_apart) {
    advance_whole(slices.start_ns[i]);
    if (whole_.position.time_ns > checkpoints_.back().position.time_ns) checkpoints_.push_back(whole_);
    keeping = keeping && starts_.size() <= most_kept;
  }
  advance_whole(walk_.end_ns());
  if (keeping && starts_.size() <= most_kept && !starts_.empty()) {
    finish_kept();
  } else {
    starts_ = {};
    phases_ = {};
  }
}

bool PhaseTimeline::Seen::add(const PhaseInterval& interval) {
  totals[static_cast<std::size_t>(interval.phase)] += interval.end_ns - interval.start_ns;
  const bool is_new = interval.start_ns != last.end_ns || interval.phase != last.phase || intervals == 0;
  intervals += is_new;
  last = interval;
  return is_new;
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

// Ends the last interval, adds the intervals up and drops the checkpoints.
void PhaseTimeline::finish_kept() {
  starts_.push_back(whole_.last.end_ns);
  phases_.push_back(not_recorded);
  starts_.shrink_to_fit();
  phases_.shrink_to_fit();
  Sum sum;
  sums_.reserve(starts_.size() / intervals_apart + 1);
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    if (i % intervals_apart == 0) sums_.push_back(sum);
    if (phases_[i] == not_recorded) continue;
    sum.totals[phases_[i]] += starts_[i + 1] - starts_[i];
    ++sum.recorded;
  }
  checkpoints_ = {};
}

std::size_t PhaseTimeline::begun_by(std::int64_t time_ns, std::size_t from) const {
  std::size_t step = 1;
  while (from + step <= starts_.size() && starts_[from + step - 1] <= time_ns) {
    from += step;
    step *= 2;
  }
  const auto end = starts_.begin() + static_cast<std::ptrdiff_t>(std::min(from + step, starts_.size()));
  return static_cast<std::size_t>(std::upper_bound(starts_.begin() + static_cast<std::ptrdiff_t>(from), end, time_ns) -
                                  starts_.begin());
}

PhaseTimeline::Totals PhaseTimeline::kept_until(std::int64_t time_ns, std::size_t begun) const {
  if (begun == 0) return {};
  const std::size_t last = begun - 1, block = last / intervals_apart;
  Totals totals = sums_[block].totals;
  for (std::size_t i = block * intervals_apart; i <= last; ++i) {
    const std::int64_t end_ns = i == last ? time_ns : starts_[i + 1];
    if (phases_[i] != not_recorded) totals[phases_[i]] += end_ns - starts_[i];
  }
  return totals;
}

// Has the memory fetched in which the next time will be looked for, if it is `further` intervals after the first
// `begun`. A drawing of a long run would otherwise wait for one place after the other.
void PhaseTimeline::fetch(std::size_t begun, std::size_t further) const {
  constexpr std::size_t line = 64 / sizeof(std::int64_t), most = 32 * line;
  if (further == 0 || further > most) return;
  const std::size_t next = begun + further, end = std::min(next + line, starts_.size());
  for (std::size_t i = begun + line; i < end; i += line) __builtin_prefetch(&starts_[i]);
  if (next >= starts_.size()) return;
  __builtin_prefetch(&phases_[next]);
  const auto* sum = reinterpret_cast<const char*>(&sums_[next / intervals_apart]);
  __builtin_prefetch(sum);
  __builtin_prefetch(sum + sizeof(Sum) - 1);
}

std::size_t PhaseTimeline::recorded_among_first(std::size_t intervals) const {
  if (intervals == 0) return 0;
  const std::size_t block = (intervals - 1) / intervals_apart;
  const auto begin = phases_.begin() + static_cast<std::ptrdiff_t>(block * intervals_apart);
  const auto end = phases_.begin() + static_cast<std::ptrdiff_t>(intervals);
  return sums_[block].recorded + static_cast<std::size_t>(end - begin - std::count(begin, end, not_recorded));
}

PhaseTimeline::Totals PhaseTimeline::until(std::int64_t time_ns) const { return Cursor(*this).until(time_ns); }

PhaseTimeline::Totals PhaseTimeline::Cursor::until(std::int64_t time_ns) {
  if (!timeline_->kept()) return timeline_->before(time_ns).totals;
  const std::size_t earlier = std::exchange(begun_, timeline_->begun_by(time_ns, begun_));
  timeline_->fetch(begun_, begun_ - earlier);
  return timeline_->kept_until(time_ns, begun_);
}

PhaseTimeline::Totals PhaseTimeline::between(std::int64_t from_ns, std::int64_t to_ns) const {
  if (to_ns <= from_ns) return {};
  Totals totals = until(to_ns);
  const Totals earlier = until(from_ns);
  for (std::size_t phase = 0; phase < phase_count; ++phase) totals[phase] -= earlier[phase];
  return totals;
}

std::size_t PhaseTimeline::count_between(std::int64_t from_ns, std::int64_t to_ns) const {
  if (to_ns <= from_ns) return 0;
  if (!kept()) return before(to_ns).intervals - before(from_ns).intervals;
  return recorded_among_first(begun_by(to_ns - 1)) - recorded_among_first(begun_by(from_ns - 1));
}

std::vector<PhaseInterval> PhaseTimeline::intervals(std::int64_t from_ns, std::int64_t to_ns) const {
  if (!kept()) return walked_intervals(from_ns, to_ns);
  std::vector<PhaseInterval> found;
  for (std::size_t i = std::max<std::size_t>(begun_by(from_ns), 1) - 1; i < starts_.size() && starts_[i] < to_ns; ++i) {
    if (phases_[i] == not_recorded) continue;
    const std::int64_t start_ns = std::max(starts_[i], from_ns), end_ns = std::min(starts_[i + 1], to_ns);
    if (end_ns > start_ns) found.push_back({start_ns, end_ns, static_cast<Phase>(phases_[i])});
  }
  return found;
}

std::optional<PhaseInterval> PhaseTimeline::at(std::int64_t time_ns) const {
  if (!kept()) return walked_at(time_ns);
  const std::size_t begun = begun_by(time_ns);
  if (begun == 0 || phases_[begun - 1] == not_recorded) return std::nullopt;
  return PhaseInterval{starts_[begun - 1], starts_[begun], static_cast<Phase>(phases_[begun - 1])};
}

std::vector<PhaseInterval> PhaseTimeline::walked_intervals(std::int64_t from_ns, std::int64_t to_ns) const {
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

std::optional<PhaseInterval> PhaseTimeline::walked_at(std::int64_t time_ns) const {
  const auto here = walked_intervals(time_ns, time_ns + 1);
  if (here.empty()) return std::nullopt;
  PhaseInterval whole = here.front();
  // To both sides, ever further, until the interval ends inside what was looked at.
  const std::int64_t first = checkpoints_.front().position.time_ns;
  for (std::int64_t reach = 1'000; whole.start_ns > first; reach *= 4) {
    const std::int64_t from = std::max(first, whole.start_ns - std::min(reach, whole.start_ns - first));
    const std::int64_t known = whole.start_ns;
    const auto left = walked_intervals(from, known + 1);
    if (!left.empty() && left.back().phase == whole.phase) whole.start_ns = left.back().start_ns;
    if (whole.start_ns > from) break;
  }
  for (std::int64_t reach = 1'000; whole.end_ns < walk_.end_ns(); reach *= 4) {
    const std::int64_t to = whole.end_ns + std::min(reach, walk_.end_ns() - whole.end_ns);
    const auto right = walked_intervals(whole.end_ns - 1, to);
    if (!right.empty() && right.front().phase == whole.phase) whole.end_ns = right.front().end_ns;
    if (whole.end_ns < to) break;
  }
  return whole;
}

}  // namespace paceline::analysis
