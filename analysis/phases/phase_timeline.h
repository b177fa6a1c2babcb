// SPDX-License-Identifier: Apache-2.0
// Answers for any stretch of time in which phases a rank was, without keeping an interval for each slice.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/phases/phase_walk.h"

namespace paceline::analysis {

class PhaseTimeline {
 public:
  using Totals = std::array<std::int64_t, phase_count>;
  static constexpr double usually_kept = 1.0 / 8;

  // `exposed` is as in PhaseWalk. All must outlive the timeline. The intervals of phases are kept where there are few
  // beside the slices, as in a training run with a range for each layer: at most `kept_per_slice` for each slice.
  // Elsewhere they are found again by a walk from the checkpoint before them. Cost: linear in the main thread's slices;
  // about 2 bytes of memory for each.
  PhaseTimeline(const PhaseTable& table, const Rank& rank, const Intervals& exposed,
                double kept_per_slice = usually_kept);

  // Nanoseconds of each phase before time_ns, time that was not recorded left out. O(log n), and where no intervals are
  // kept O(log n + 128).
  Totals until(std::int64_t time_ns) const;
  // The same from from_ns to before to_ns.
  Totals between(std::int64_t from_ns, std::int64_t to_ns) const;
  const Totals& totals() const { return whole_.totals; }  // of the rank

  // The same as until() for times that rise, as in a drawing from left to right: finds each time from the one before.
  class Cursor {
   public:
    explicit Cursor(const PhaseTimeline& timeline) : timeline_(&timeline) {}
    Totals until(std::int64_t time_ns);

   private:
    const PhaseTimeline* timeline_;
    std::size_t begun_ = 0;  // kept intervals that begin by the last time
  };

  // How many intervals begin from from_ns to before to_ns. Cost: as until().
  std::size_t count_between(std::int64_t from_ns, std::int64_t to_ns) const;

  // The intervals that touch this time, cut to it. Cost: linear in them, or in the slices in that time.
  std::vector<PhaseInterval> intervals(std::int64_t from_ns, std::int64_t to_ns) const;

  // The whole interval that holds this time; nothing where the rank was not recorded. Cost: O(log n), or linear in its
  // slices.
  std::optional<PhaseInterval> at(std::int64_t time_ns) const;

 private:
  // What the walk has seen up to a time.
  struct Seen {
    PhaseWalk::Position position;
    Totals totals{};
    std::size_t intervals = 0;
    PhaseInterval last;  // only its end and phase

    // Whether this is another interval than the last one.
    bool add(const PhaseInterval& interval);
  };
  const Seen& checkpoint(std::int64_t time_ns) const;
  Seen before(std::int64_t time_ns) const;
  void advance(Seen& seen, std::int64_t time_ns) const;
  std::vector<PhaseInterval> walked_intervals(std::int64_t from_ns, std::int64_t to_ns) const;
  std::optional<PhaseInterval> walked_at(std::int64_t time_ns) const;

  // Of kept intervals. Stretches that were not recorded are among them, with a phase of their own.
  bool kept() const { return !starts_.empty(); }
  void finish_kept();
  // How many begin by this time, given that `from` of them do.
  std::size_t begun_by(std::int64_t time_ns, std::size_t from = 0) const;
  // Until this time, by which `begun` of them begin.
  Totals kept_until(std::int64_t time_ns, std::size_t begun) const;
  void fetch(std::size_t begun, std::size_t further) const;
  std::size_t recorded_among_first(std::size_t intervals) const;

  PhaseWalk walk_;
  std::vector<Seen> checkpoints_;  // by time; the first is the start of the rank
  Seen whole_;

  struct Sum {
    Totals totals{};
    std::size_t recorded = 0;  // intervals
  };
  std::vector<std::int64_t> starts_;  // the last one is the end of the rank
  std::vector<std::uint8_t> phases_;  // of each start
  std::vector<Sum> sums_;             // of what is before each block of intervals
};

}  // namespace paceline::analysis
