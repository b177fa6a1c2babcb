#include "analysis/metrics/overlap.h"

#include <algorithm>
#include <vector>

#include "analysis/metrics/phase_rules.h"

namespace paceline::analysis {
namespace {

struct Interval {
  std::int64_t start_ns, end_ns;
};

// Sorted and disjoint, covering the same time.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::start_ns);
  std::vector<Interval> result;
  for (const Interval& interval : intervals) {
    if (!result.empty() && interval.start_ns <= result.back().end_ns) {
      result.back().end_ns = std::max(result.back().end_ns, interval.end_ns);
    } else {
      result.push_back(interval);
    }
  }
  return result;
}

std::int64_t common_ns(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t total = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    total += std::max<std::int64_t>(std::min(i->end_ns, j->end_ns) - std::max(i->start_ns, j->start_ns), 0);
    if (i->end_ns < j->end_ns) {
      ++i;
    } else {
      ++j;
    }
  }
  return total;
}

}  // namespace

std::optional<Overlap> overlap_of(const Trace& trace, const Rank& rank, const RankPhases& phases) {
  PhaseTable table(trace);
  std::vector<Interval> communication, compute;
  for (const Track& track : rank.tracks) {
    if (track.main) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      if (table.phase(track.slices.slice_class[i], track.slices.name[i]) == Phase::communication) {
        communication.push_back({track.slices.start_ns[i], track.slices.end_ns(i)});
      }
    }
  }
  if (communication.empty()) return std::nullopt;
  for (const PhaseInterval& interval : phases.intervals) {
    if (interval.phase == Phase::forward || interval.phase == Phase::backward || interval.phase == Phase::optimizer) {
      compute.push_back({interval.start_ns, interval.end_ns});
    }
  }
  communication = merged(std::move(communication));
  Overlap overlap;
  for (const Interval& interval : communication) overlap.communication_ns += interval.end_ns - interval.start_ns;
  overlap.hidden_ns = common_ns(communication, merged(std::move(compute)));
  return overlap;
}

}  // namespace paceline::analysis
