// SPDX-License-Identifier: Apache-2.0
// Gives each stretch of a rank's time to a phase, from left to right along its main thread.
//
// The walk can be left and resumed at any time, so that a picture of some seconds of a long run need not keep the
// intervals of all of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/phases/phase_rules.h"
#include "analysis/phases/phases.h"
#include "analysis/trace/intervals.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

class PhaseWalk {
 public:
  // `exposed`: GpuActivity::exposed() of the rank. All must outlive the walk. Cost: linear in the main thread's slices
  // before the first iteration.
  PhaseWalk(const PhaseTable& table, const Rank& rank, const Intervals& exposed);

  // Where a walk is: everything before time_ns has been visited.
  struct Position {
    std::int64_t time_ns = 0;

   private:
    friend class PhaseWalk;
    struct Open {
      std::int64_t end_ns;
      std::optional<Phase> phase;   // its own, else that of the slice around it
      std::optional<Phase> holder;  // the start-up, evaluation or checkpoint that it is, or is part of
    };
    std::size_t slice = 0, gap = 0;  // the next ones
    std::int64_t gap_ns = 0;         // the start of that gap
    std::vector<Open> open;
  };
  Position start() const {
    Position position;
    position.time_ns = rank_.start_ns;
    position.gap_ns = gap_start(0);
    return position;
  }

  // Visits the time from `at` to `until_ns`: visit(const PhaseInterval&), in order; neighbours may have one phase.
  // Cost: linear in the slices between the two times.
  template <class Visit>
  void advance(Position& at, std::int64_t until_ns, Visit&& visit) const {
    const Slices& slices = *slices_;
    for (; at.slice < slices.size() && slices.start_ns[at.slice] < until_ns; ++at.slice) {
      const std::int64_t start = slices.start_ns[at.slice];
      // Inside another slice, a slice without a phase of its own changes nothing, and most slices are like that.
      const bool inside = !at.open.empty() && at.open.back().end_ns > start;
      if (inside && !table_.phase(slices.kind[at.slice])) continue;
      close(at, start, visit);
      const Position::Open inner = opened(at);
      // Most slices end before the next one starts, and need no place among the open ones.
      const bool is_last = at.slice + 1 == slices.size();
      const std::int64_t next_ns = is_last ? until_ns : std::min(slices.start_ns[at.slice + 1], until_ns);
      if (inner.end_ns > next_ns) {
        at.open.push_back(inner);
      } else {
        cut(at, inner.end_ns, inner.phase, visit);
      }
    }
    close(at, until_ns, visit);
  }

  std::int64_t end_ns() const { return rank_.end_ns; }
  // The main thread's slices, in whose order the walk goes.
  const Slices& slices() const { return *slices_; }

 private:
  // The next slice, inside those that are open.
  Position::Open opened(const Position& at) const {
    const KindId kind = slices_->kind[at.slice];
    const Position::Open inner{slices_->end_ns(at.slice), table_.phase(kind), std::nullopt};
    if (at.open.empty() && !(inner.phase && holds_its_compute(*inner.phase))) return inner;
    return opened_inside(at, inner);
  }
  Position::Open opened_inside(const Position& at, Position::Open inner) const;
  // True for the phases to which the compute inside them belongs.
  static bool holds_its_compute(Phase phase) {
    return phase == Phase::startup || phase == Phase::evaluate || phase == Phase::checkpoint;
  }

  // Gives the time up to `until`, and ends what ends by then.
  template <class Visit>
  void close(Position& at, std::int64_t until, Visit&& visit) const {
    for (; !at.open.empty() && at.open.back().end_ns <= until; at.open.pop_back()) {
      cut(at, at.open.back().end_ns, at.open.back().phase, visit);
    }
    cut(at, until, at.open.empty() ? std::nullopt : at.open.back().phase, visit);
  }

  // Without a phase, the time belongs to start-up or other.
  template <class Visit>
  void cut(Position& at, std::int64_t until, std::optional<Phase> phase, Visit&& visit) const {
    until = std::min(until, rank_.end_ns);
    if (phase) return give(at, until, *phase, visit);
    if (at.time_ns < startup_end_) give(at, std::min(until, startup_end_), Phase::startup, visit);
    give(at, until, Phase::other, visit);
  }

  std::int64_t gap_start(std::size_t gap) const {
    return gap < rank_.gaps.size() ? rank_.gaps[gap].start_ns : std::numeric_limits<std::int64_t>::max();
  }

  // Time that was not recorded belongs to no phase.
  template <class Visit>
  void give(Position& at, std::int64_t until, Phase phase, Visit&& visit) const {
    for (; at.gap_ns < until; at.gap_ns = gap_start(++at.gap)) {
      const Gap& gap = rank_.gaps[at.gap];
      give_recorded(at, gap.start_ns, phase, visit);
      at.time_ns = std::max(at.time_ns, std::min(gap.end_ns, until));
      if (gap.end_ns > until) return;
    }
    give_recorded(at, until, phase, visit);
  }

  template <class Visit>
  void give_recorded(Position& at, std::int64_t until, Phase phase, Visit&& visit) const {
    if (until <= at.time_ns) return;
    const std::int64_t from = std::exchange(at.time_ns, until);
    if (phase == Phase::idle && !exposed_.empty()) return split_idle(from, until, visit);
    visit(PhaseInterval{from, until, phase});
  }

  // A thread that waits for its device waits for communication while nothing but communication runs there.
  template <class Visit>
  void split_idle(std::int64_t from, std::int64_t until, Visit&& visit) const {
    const auto give = [&](std::int64_t end, Phase phase) {
      if (end > from) visit(PhaseInterval{from, end, phase});
      from = std::max(from, end);
    };
    auto part = std::ranges::upper_bound(exposed_, from, {}, &TimeInterval::end_ns);
    for (; part != exposed_.end() && part->start_ns < until; ++part) {
      give(part->start_ns, Phase::idle);
      give(std::min(part->end_ns, until), Phase::communication);
    }
    give(until, Phase::idle);
  }

  const PhaseTable& table_;
  const Rank& rank_;
  const Slices* slices_;  // the main thread's
  std::int64_t startup_end_ = 0;
  const Intervals& exposed_;
};

// Calls visit(const PhaseInterval&) for each interval of the rank's time, in order. Neighbours that touch have
// different phases. Cost: linear in the slices of the main thread.
template <class Visit>
void each_phase_interval(const PhaseTable& table, const Rank& rank, const Intervals& exposed, Visit&& visit) {
  const PhaseWalk walk(table, rank, exposed);
  PhaseWalk::Position at = walk.start();
  PhaseInterval last;
  walk.advance(at, walk.end_ns(), [&](const PhaseInterval& interval) {
    if (interval.phase == last.phase && interval.start_ns == last.end_ns) {
      last.end_ns = interval.end_ns;
      return;
    }
    if (last.end_ns > last.start_ns) visit(last);
    last = interval;
  });
  if (last.end_ns > last.start_ns) visit(last);
}

}  // namespace paceline::analysis
