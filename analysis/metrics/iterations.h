// The iterations (training steps) of a rank: how long each took and what it was made of.
//
// Iterations are the outermost ranges of the main thread that the rules take for one (phase_rules.h): category
// "iteration", or names such as "iteration", "step 7" and PyTorch's "ProfilerStep#7".
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analysis/metrics/phases.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct Iteration {
  std::int64_t number = 0;  // the range's payload; else the number that its name ends with; else counted from 0
  std::int64_t start_ns = 0, duration_ns = 0;
  bool finished = true;  // false: the process ended inside, or a part was not recorded or lost
  bool lost = false;     // events of the main thread were lost inside, or at its begin or end
  bool counted = false;  // its number was counted, so it is wrong where earlier iterations were lost
  std::array<std::int64_t, phase_count> phase_ns{};  // adds up to duration_ns exactly, but for gaps
};

// In the order of their starts; empty where the rank has none. Cost: linear in the main thread's slices and `phases`.
std::vector<Iteration> iterations_of(const Trace& trace, const Rank& rank, const RankPhases& phases);

struct IterationSummary {
  std::size_t count = 0;                   // finished ones
  std::int64_t median_ns = 0, p95_ns = 0;  // of their durations
};
IterationSummary summarize(const std::vector<Iteration>& iterations);

}  // namespace paceline::analysis
