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
  using Totals = std::array<std::int64_t, phase_count>;

  // Both must outlive the timeline. Cost: linear in the main thread's slices; about 2 bytes of memory for each.
  PhaseTimeline(const PhaseTable& table, const Rank& rank);

  // Nanoseconds of each phase before time_ns, time that was not recorded left out. O(log n + 128).
  Totals until(std::int64_t time_ns) const { return before(time_ns).totals; }
  // The same from from_ns to before to_ns.
  Totals between(std::int64_t from_ns, std::int64_t to_ns) const;
  const Totals& totals() const { return whole_.totals; }  // of the rank

  // How many intervals begin from from_ns to before to_ns. O(log n + 128).
  std::size_t count_between(std::int64_t from_ns, std::int64_t to_ns) const;

  // The intervals that touch this time, cut to it. Cost: linear in the slices in it.
  std::vector<PhaseInterval> intervals(std::int64_t from_ns, std::int64_t to_ns) const;

  // The whole interval that holds this time; nothing where the rank was not recorded. Cost: linear in its slices.
  std::optional<PhaseInterval> at(std::int64_t time_ns) const;

 private:
  // What the walk has seen up to a time.
  struct Seen {
    PhaseWalk::Position position;
    Totals totals{};
    std::size_t intervals = 0;
    PhaseInterval last;  // only its end and phase

    void add(const PhaseInterval& interval);
  };
  const Seen& checkpoint(std::int64_t time_ns) const;
  Seen before(std::int64_t time_ns) const;
  void advance(Seen& seen, std::int64_t time_ns) const;

  PhaseWalk walk_;
  std::vector<Seen> checkpoints_;  // by time; the first is the start of the rank
  Seen whole_;
};

}  // namespace paceline::analysis
