// Figures about what a user points at: a stretch of time, an iteration, a slice's name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/metrics/iterations.h"
#include "analysis/metrics/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// Answers for any stretch of time how long a rank was in each phase.
class PhaseTotals {
 public:
  PhaseTotals() = default;
  // Linear in the intervals, which must outlive this object and stay where they are. Memory: 1.5 bytes an interval.
  explicit PhaseTotals(const std::vector<PhaseInterval>& intervals);

  // Nanoseconds a phase within [from, to), 0 where the rank was not yet or no longer there. O(log n + 64).
  std::array<std::int64_t, phase_count> between(std::int64_t from_ns, std::int64_t to_ns) const;
  // The interval that holds this time, as an index; the number of intervals where the rank is over. O(log n).
  std::size_t interval_at(std::int64_t time_ns) const;

 private:
  std::array<std::int64_t, phase_count> until(std::int64_t time_ns) const;

  const std::vector<PhaseInterval>* intervals_ = nullptr;
  std::vector<std::array<std::int64_t, phase_count>> before_;  // totals before interval 64 · k
};

// The iteration that holds this time; nullptr where none does. O(log n).
const Iteration* iteration_at(const std::vector<Iteration>& iterations, std::int64_t time_ns);

// How long the slices of one name lasted.
struct DurationStatistics {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, minimum_ns = 0, maximum_ns = 0;
  std::int64_t median_ns = 0, p95_ns = 0;  // quantiles as in statistics.h
};

// Over these tracks of a rank, all of them as a rule. Linear in their slices.
DurationStatistics durations_of(const Trace& trace, std::span<const Track> tracks, NameId name);

}  // namespace paceline::analysis
