// Figures about a selection: a stretch of time, an iteration, the slices of one name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/metrics/iterations.h"
#include "analysis/metrics/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// How long a rank was in each phase during any stretch of time.
class PhaseTotals {
 public:
  PhaseTotals() = default;
  // Linear in the intervals, which must outlive this object and stay where they are. Memory: 1.5 bytes for each
  // interval.
  explicit PhaseTotals(const std::vector<PhaseInterval>& intervals);

  // Nanoseconds in each phase within [from, to); 0 before the start and after the end of the rank. O(log n + 64).
  std::array<std::int64_t, phase_count> between(std::int64_t from_ns, std::int64_t to_ns) const;
  // The index of the interval that contains this time; the number of intervals after the end of the rank. O(log n).
  std::size_t interval_at(std::int64_t time_ns) const;

 private:
  std::array<std::int64_t, phase_count> until(std::int64_t time_ns) const;

  const std::vector<PhaseInterval>* intervals_ = nullptr;
  std::vector<std::array<std::int64_t, phase_count>> before_;  // totals before interval 64 · k
};

// The iteration that contains this time; nullptr if none does. O(log n).
const Iteration* iteration_at(std::span<const Iteration> iterations, std::int64_t time_ns);

// The durations of the slices of one name.
struct DurationStatistics {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0, minimum_ns = 0, maximum_ns = 0;
  std::int64_t median_ns = 0, p95_ns = 0;  // quantiles as in statistics.h
};

// Over these tracks of a rank. Linear in their slices.
DurationStatistics durations_of(const Trace& trace, std::span<const Track> tracks, NameId name);

}  // namespace paceline::analysis
