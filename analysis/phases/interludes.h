// SPDX-License-Identifier: Apache-2.0
// Interludes: the evaluations and checkpoints of a rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/phases/iterations.h"
#include "analysis/phases/phases.h"

namespace paceline::analysis {

// From the first to the last time in the phase `evaluate` or `checkpoint`, with no begin or end of an iteration and
// nothing of the other of these phases in between. What lies between the batches of an evaluation, such as the wait for
// the next one, belongs to it, and so does what precedes it since the end of an iteration, such as the start of a
// loader.
struct Interlude {
  std::int64_t start_ns = 0, end_ns = 0;
  Phase phase = Phase::evaluate;
  // Where the delay that it makes ends: at the start of the iteration or interlude that follows at once, else at its
  // end.
  std::int64_t settled_ns = 0;
};

// Finds them in the rank's phase intervals, which are added one after the other.
class InterludeWalk {
 public:
  explicit InterludeWalk(std::span<const Iteration> iterations) : iterations_(iterations) {}
  void add(const PhaseInterval& interval) {
    if (interval.phase == Phase::evaluate || interval.phase == Phase::checkpoint) add_to(interval);
  }
  std::vector<Interlude> take() { return std::move(found_); }

 private:
  void add_to(const PhaseInterval& interval);
  std::span<const Iteration> iterations_;
  std::size_t next_ = 0, place_ = 0;  // the iteration that may hold the next interval; that of the last interlude
  std::vector<Interlude> found_;
};

// How much of the phase lies between the iteration and the one before it; 0 for the first one. `iterations` are those
// of the rank, by start, and `of` is one of them. O(log n), and linear in the interludes there.
std::int64_t interlude_ns(std::span<const Interlude> interludes, std::span<const Iteration> iterations,
                          const Iteration& of, Phase phase);

}  // namespace paceline::analysis
