// Answers for any stretch of time in which phases a rank was, without keeping an interval for each slice.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/metrics/phase_walk.h"

namespace paceline::analysis {

class PhaseTimeline {
 public:
  // Both must outlive the timeline. Cost: linear in the main thread's slices; half a byte of memory for each.
  PhaseTimeline(const PhaseTable& table, const Rank& rank);

  // Nanoseconds of each phase from from_ns to before to_ns, 0 where the rank was not recorded. O(log n + 1024).
  std::array<std::int64_t, phase_count> between(std::int64_t from_ns, std::int64_t to_ns) const;

  // The intervals that touch this time, cut to it. Cost: linear in the slices in it.
  std::vector<PhaseInterval> intervals(std::int64_t from_ns, std::int64_t to_ns) const;

  // The whole interval that holds this time; nothing where the rank was not recorded. Cost: linear in its slices.
  std::optional<PhaseInterval> at(std::int64_t time_ns) const;

  // How many slices of the main thread start in this time: half the number of its intervals at most. O(log n).
  std::size_t slices_between(std::int64_t from_ns, std::int64_t to_ns) const;

  const std::array<std::int64_t, phase_count>& totals() const { return totals_; }

 private:
  struct Checkpoint {
    PhaseWalk::Position position;
    std::array<std::int64_t, phase_count> totals{};
  };
  const Checkpoint& before(std::int64_t time_ns) const;
  std::array<std::int64_t, phase_count> until(std::int64_t time_ns) const;

  PhaseWalk walk_;
  std::vector<Checkpoint> checkpoints_;  // by time; the first is the start of the rank
  std::array<std::int64_t, phase_count> totals_{};
};

}  // namespace paceline::analysis
