// SPDX-License-Identifier: Apache-2.0
// The iterations (training steps) of a rank: how long each took and in which phases.
//
// Iterations are the outermost ranges of the main thread that the rules take for iterations (phase_rules.h): category
// "iteration", or names such as "iteration", "step 7" and PyTorch's "ProfilerStep#7".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/phases/phase_rules.h"
#include "analysis/phases/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct Iteration {
  std::int64_t number = 0;  // the payload of the range, else the number at the end of its name, else counted from 0
  std::int64_t start_ns = 0, duration_ns = 0;
  bool finished = true;  // false: the process ended inside, or a part was lost or not recorded
  bool lost = false;     // events of the main thread were lost inside, or at its begin or end
  bool counted = false;  // its number was counted, so it is wrong if earlier iterations were lost
  std::array<std::int64_t, phase_count> phase_ns{};  // adds up to duration_ns exactly, except for gaps
};

// The digits at the end of an iteration's name, "ProfilerStep#12"; nothing where it ends in no number.
std::optional<std::int64_t> trailing_number(std::string_view name);

// In the order of their starts, without phases; empty where the rank has none. Cost: linear in the main thread's
// slices.
std::vector<Iteration> iterations_of(const PhaseTable& table, const Rank& rank);

// Adds the rank's phase intervals to its iterations, one after the other.
class IterationPhases {
 public:
  explicit IterationPhases(std::vector<Iteration>& iterations) : iterations_(iterations) {}
  void add(const PhaseInterval& interval) {
    if (next_ < iterations_.size()) add_to(interval);
  }

 private:
  void add_to(const PhaseInterval& interval);
  std::vector<Iteration>& iterations_;
  std::size_t next_ = 0;  // the first that may end after the next interval's start
};

// The iterations of a rank as parts of its run.
struct RankIterations {
  std::span<const Iteration> of;
  bool lost = false;    // events of the main thread, so that it may lack iterations
  bool located = true;  // false: it is not known when, so that any iteration may be wrong
};

// An iteration of a run, from the first rank's begin to the last rank's end.
struct RunIteration {
  std::int64_t number = 0, start_ns = 0, end_ns = 0;
  double mean_ns = 0;     // of its duration, over the ranks that finished it
  bool finished = false;  // by all ranks, and nothing of any rank's iterations was lost at an unknown time

  std::int64_t duration_ns() const { return static_cast<std::int64_t>(mean_ns + 0.5); }
};

// By number. Cost: linear where every rank has the same numbers in order, else n log n.
std::vector<RunIteration> joined_iterations(std::span<const RankIterations> ranks);

// Iterations whose number was counted are not finished from the first loss on: the number may be wrong, so they cannot
// be compared with those of other ranks.
void leave_out_miscounted(std::vector<Iteration>& iterations, std::int64_t first_loss_ns);

struct IterationSummary {
  std::size_t count = 0;                   // finished ones
  std::int64_t median_ns = 0, p95_ns = 0;  // of their durations
};
IterationSummary summarize(const std::vector<Iteration>& iterations);

}  // namespace paceline::analysis
