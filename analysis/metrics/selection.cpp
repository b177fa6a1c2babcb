#include "analysis/metrics/selection.h"

#include <algorithm>

#include "analysis/metrics/statistics.h"

namespace paceline::analysis {
namespace {

constexpr std::size_t stride = 64;

std::int64_t& of(std::array<std::int64_t, phase_count>& totals, Phase phase) {
  return totals[static_cast<std::size_t>(phase)];
}

}  // namespace

PhaseTotals::PhaseTotals(const std::vector<PhaseInterval>& intervals) : intervals_(&intervals) {
  before_.reserve(intervals.size() / stride + 1);
  std::array<std::int64_t, phase_count> totals{};
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (i % stride == 0) before_.push_back(totals);
    of(totals, intervals[i].phase) += intervals[i].end_ns - intervals[i].start_ns;
  }
}

std::size_t PhaseTotals::interval_at(std::int64_t time_ns) const {
  if (intervals_ == nullptr) return 0;
  return static_cast<std::size_t>(
      std::partition_point(intervals_->begin(), intervals_->end(),
                           [&](const PhaseInterval& interval) { return interval.end_ns <= time_ns; }) -
      intervals_->begin());
}

std::array<std::int64_t, phase_count> PhaseTotals::until(std::int64_t time_ns) const {
  if (intervals_ == nullptr || intervals_->empty()) return {};
  const std::size_t last = std::min(interval_at(time_ns), intervals_->size() - 1);
  auto totals = before_[last / stride];
  for (std::size_t i = last / stride * stride; i <= last; ++i) {
    const auto& interval = (*intervals_)[i];
    const std::int64_t end = std::min(interval.end_ns, time_ns);
    if (end > interval.start_ns) of(totals, interval.phase) += end - interval.start_ns;
  }
  return totals;
}

std::array<std::int64_t, phase_count> PhaseTotals::between(std::int64_t from_ns, std::int64_t to_ns) const {
  if (to_ns <= from_ns) return {};
  auto totals = until(to_ns);
  const auto before = until(from_ns);
  for (std::size_t i = 0; i < phase_count; ++i) totals[i] -= before[i];
  return totals;
}

const Iteration* iteration_at(std::span<const Iteration> iterations, std::int64_t time_ns) {
  const auto after = std::partition_point(iterations.begin(), iterations.end(),
                                          [&](const Iteration& iteration) { return iteration.start_ns <= time_ns; });
  if (after == iterations.begin()) return nullptr;
  const Iteration& iteration = *std::prev(after);
  return time_ns < iteration.start_ns + iteration.duration_ns ? &iteration : nullptr;
}

DurationStatistics durations_of(const Trace& trace, std::span<const Track> tracks, NameId name) {
  std::vector<std::int64_t> durations;
  for (const Track& track : tracks) {
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      if (trace.kind_of(track.slices, i).name == name) durations.push_back(track.slices.duration_ns[i]);
    }
  }
  DurationStatistics statistics;
  if (durations.empty()) return statistics;
  statistics.count = durations.size();
  for (const std::int64_t duration : durations) statistics.total_ns += duration;
  const auto [shortest, longest] = std::minmax_element(durations.begin(), durations.end());
  statistics.minimum_ns = *shortest;
  statistics.maximum_ns = *longest;
  statistics.median_ns = median(durations);
  statistics.p95_ns = quantile(durations, 0.95);
  return statistics;
}

}  // namespace paceline::analysis
